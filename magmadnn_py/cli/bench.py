"""`magmadnn bench ...`: how fast kernels, layers and networks are here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

bench_app = typer.Typer(help="Measure speed here, beside PyTorch where it is installed.", no_args_is_help=True)

Text = Annotated[str, typer.Option("--filter", help="Only cases whose name holds this text.")]
Seconds = Annotated[float, typer.Option(min=0.0, help="Time for each case, all contenders together.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; by default one per core.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write the rows to this file, for the kernel database.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Draw the rows below the machine's limit, to this file.")]


@bench_app.command()
def kernels(
    families: Annotated[str, typer.Option(help="Op families, by commas: conv,pool,...; by default all.")] = "",
    algorithms: Annotated[str, typer.Option(help="Only these algorithms, by commas.")] = "",
    text: Text = "",
    seconds: Seconds = 0.5,
    threads: Threads = None,
    json: Json = None,
    plot: Plot = None,
) -> None:
    """Every kernel and algorithm on layers of known networks."""
    from ..benchmarks.kernels import check_algorithms, measure_case, select

    wanted = _names(algorithms)
    check_algorithms(wanted)
    chosen = select(_names(families), text)

    def rows_of(case):
        return lambda limit: measure_case(case, limit, seconds, wanted)

    groups = {family: {case.label: rows_of(case) for case in cases} for family, cases in chosen.items()}
    _measure(groups, threads, json, plot)


@bench_app.command()
def layers(
    text: Text = "", seconds: Seconds = 1.0, threads: Threads = None, json: Json = None, plot: Plot = None
) -> None:
    """Whole layers, forward and backward."""
    from ..benchmarks.layers import LAYERS, measure_layer

    def rows_of(case):
        return lambda limit: [measure_layer(case, limit, seconds)]

    chosen = {case.label: rows_of(case) for case in LAYERS if text in case.label}
    _measure({"layers, forward and backward": chosen}, threads, json, plot)


@bench_app.command()
def models(
    text: Text = "", seconds: Seconds = 5.0, threads: Threads = None, json: Json = None, plot: Plot = None
) -> None:
    """Training steps and predictions of whole networks."""
    from ..benchmarks.models import NETWORKS, measure_model

    def rows_of(case):
        return lambda limit: measure_model(case, limit, seconds)

    chosen = {case.name: rows_of(case) for case in NETWORKS if text in case.name}
    _measure({"networks": chosen}, threads, json, plot)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _measure(
    groups: dict[str, dict[str, Callable[..., Iterable]]], threads: int | None, json: Path | None, plot: Path | None
) -> None:
    """Measures case by case and prints a table per group; interrupted, it still writes what was measured."""
    import magmadnn_py as mdnn

    from ..benchmarks import report, rows
    from ..benchmarks.limit import measure_limit
    from ..benchmarks.plot import check_plotting, write_roofline
    from ..runtime.kernels import device

    if not any(groups.values()):
        raise ValueError("bench: --filter: no case has this text in its name")
    if plot:
        check_plotting(plot)
    if threads is not None:
        mdnn.set_threads(threads)
    console = report.console()
    limit = measure_limit(mdnn.get_threads())
    console.print(f"{device()}, {mdnn.get_threads()} threads", highlight=False)
    console.print(str(limit), highlight=False)
    measured = []
    try:
        for title, cases in groups.items():
            found = []
            for label, rows_of in cases.items():
                with console.status(f"{title}: {label}"):
                    for row in rows_of(limit):
                        found.append(row)
                        measured.append(row)
            console.print(report.table(title, found))
    finally:
        if json:
            rows.write_json(json, measured)
        if plot:
            write_roofline(plot, measured, limit)
