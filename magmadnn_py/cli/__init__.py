"""The command `magmadnn`."""

from __future__ import annotations

import typer

from .bench import bench_app
from .info import info
from .train import train_app

app = typer.Typer(
    help="Deep learning on one graph and one GEMM.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(train_app, name="train")
app.add_typer(bench_app, name="bench")
app.command()(info)


def main() -> None:
    """Runs the command line; a wrong input ends with one line and exit status 1."""
    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        typer.secho(f"magmadnn: {error}", fg="red", err=True)
        raise SystemExit(1) from None
