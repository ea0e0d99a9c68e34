"""Speed of this project beside its peers: whole steps through the public `fit` and `predict`, alternating in one run.

    python benchmarks/compare.py [--networks lenet5 vgg16] [--mode train] [--batch 128] [--peers torch] [--json F]

Each round runs every contender on the same images, in turn; the figures are medians over the rounds. By default the
peers are PyTorch's two layouts, each with and without torch.compile, which takes minutes for the large networks:
`--peers torch torch-channels-last` does without. Keras takes part on request: `--peers keras-jax keras-torch`.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import time

import numpy as np
from contenders import KERAS_MODES, TORCH_MODES, Keras, Ours, torch_contenders

#: Network -> batch sizes in training.
TRAINING = {
    "mnist_convnet": [128], "lenet5": [128, 32], "mlp": [128, 32], "resnet20": [128], "vgg16": [4, 16],
    "resnet50": [8], "alexnet": [32],
}  # fmt: skip
#: Networks whose prediction is measured, and the size of the batches.
PREDICTION, PREDICTION_BATCH = ["mnist_convnet", "lenet5", "vgg16", "resnet20", "resnet50", "alexnet"], 32
TINY = "8-8-2"


def images(count: int, shape) -> tuple[np.ndarray, np.ndarray]:
    """Random images; of grey ones two thirds of the pixels are zero, as in MNIST. Labels of ten classes."""
    generator = np.random.default_rng(0)
    x = generator.random((count, *shape), dtype=np.float32)
    if shape[-1] == 1:
        x *= generator.random(x.shape) < 0.35
    return x, generator.integers(0, 10, count)


def contenders(ours: Ours, network: str, mode: str, batch: int, arguments):
    yield ours
    names = [name for name in arguments.peers if name in TORCH_MODES]
    if names:
        yield from torch_contenders(network, mode, batch, arguments.threads, names)
    for name in arguments.peers:
        if name in KERAS_MODES:
            yield Keras(name, network, mode, batch, arguments.threads)


def timed_round(contender) -> float:
    start = time.perf_counter()
    inside = contender.round()
    return inside if inside is not None else time.perf_counter() - start


def warmed_up(found, shape, batch: int) -> tuple[dict, dict[str, float], dict[str, str]]:
    """Runs each contender twice on one batch: contenders by name, seconds per step, and the reasons of failures."""
    x, y = images(batch, shape)
    running, seconds, failures = {}, {}, {}
    for contender in found:
        try:
            contender.load(x, y)
            first = timed_round(contender)
            seconds[contender.name] = timed_round(contender)
            running[contender.name] = contender
            if first > 20:
                print(f"  ({contender.name} took {first:.0f} s to start)", flush=True)
        except Exception as error:  # a peer that does not run here must not end the comparison
            if contender.name == Ours.name:
                raise
            failures[contender.name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    return running, seconds, failures


def compare(network: str, mode: str, batch: int, arguments) -> dict:
    print(f"\n{network}, {mode}, batch {batch}, {arguments.threads} threads", flush=True)
    ours = Ours(network, mode, batch, arguments.threads)
    shape = ours.model.input_shape[1:]
    found = contenders(ours, network, mode, batch, arguments)
    running, step_seconds, failures = warmed_up(found, shape, batch)
    steps = min(max(1, round(arguments.seconds / statistics.median(step_seconds.values()))), 100)
    x, y = images(steps * batch, shape)
    for contender in running.values():
        contender.load(x, y)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for number in range(arguments.rounds + (steps > 1)):
        for name, contender in running.items():
            taken = timed_round(contender)
            if number or steps == 1:  # the first round of more images than the warm-up's is another one
                seconds[name].append(taken)
    for contender in running.values():
        if isinstance(contender, Keras):
            contender.close()
    return report(network, mode, batch, steps * batch, seconds, failures)


def report(network, mode, batch, count, seconds: dict[str, list[float]], failures: dict[str, str]) -> dict:
    """Prints and returns the rates, and the ratio to PyTorch's best."""
    rates = {name: count / statistics.median(times) for name, times in seconds.items()}
    print(f"  median of {len(seconds[Ours.name])} rounds of {count} images")
    for name, times in seconds.items():
        spread = (max(times) - min(times)) / statistics.median(times)
        ratio = rates[Ours.name] / rates[name]
        print(f"  {name:28} {rates[name]:10,.1f} images/s   spread {100 * spread:4.0f} %   ours is {ratio:5.2f} x")
    for name, reason in failures.items():
        print(f"  {name:28} did not run: {reason}")
    torch_rates = {name: rate for name, rate in rates.items() if name in TORCH_MODES}
    best = max(torch_rates, key=torch_rates.get) if torch_rates else None
    return {
        "network": network, "mode": mode, "batch": batch, "images_per_second": rates, "did_not_run": failures,
        "best_torch": best, "ratio_to_torch": rates[Ours.name] / rates[best] if best else None,
    }  # fmt: skip


def tiny_step(threads: int) -> dict:
    """Microseconds of one training step of an 8-8-2 dense network at batch 32, inside `fit`."""
    import magmadnn_py as mdnn
    from magmadnn_py import layers

    mdnn.set_threads(threads)
    rows, batch = 32 * 20000, 32
    generator = np.random.default_rng(0)
    x = generator.random((rows, 8), dtype=np.float32)
    y = generator.integers(0, 2, rows)
    stack = [mdnn.Input((8,)), layers.Dense(8, activation="relu"), layers.Dense(2, activation="softmax")]
    model = mdnn.Sequential(stack)
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(x, y, batch_size=batch, verbose=0)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.fit(x, y, batch_size=batch, verbose=0)
        times.append((time.perf_counter() - start) / (rows // batch) * 1e6)
    step = statistics.median(times)
    print(f"\n{TINY} dense network, train, batch 32: {step:.1f} microseconds per step (shuffling included)", flush=True)
    return {"network": TINY, "mode": "train", "batch": 32, "microseconds_per_step": step}


def print_table(results: list[dict], peers: list[str]) -> None:
    print(f"\nPyTorch took part as: {', '.join(name for name in peers if name in TORCH_MODES) or 'nothing'}.\n")
    print("| network | batch | what | magmadnn_py, images/s | PyTorch's best, images/s | which | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for result in results:
        if best := result.get("best_torch"):
            ours, theirs = (result["images_per_second"][name] for name in (Ours.name, best))
            what = f"{result['network']} | {result['batch']} | {result['mode']}"
            print(f"| {what} | {ours:,.1f} | {theirs:,.1f} | {best} | {result['ratio_to_torch']:.2f} x |")


def workloads(arguments):
    """(network, mode, batch) of each comparison."""
    modes = ["train", "predict"] if arguments.mode == "both" else [arguments.mode]
    for mode in modes:
        for network in TRAINING:
            if network in arguments.networks and (mode == "train" or network in PREDICTION):
                usual = TRAINING[network] if mode == "train" else [PREDICTION_BATCH]
                yield from ((network, mode, batch) for batch in arguments.batch or usual)


def versions() -> dict[str, str]:
    found = {}
    for name in ("magmadnn-py", "torch", "keras", "jax"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*TRAINING, TINY]
    parser.add_argument("--networks", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--mode", choices=["train", "predict", "both"], default="both")
    parser.add_argument("--batch", nargs="+", type=int, help="in place of the usual batch sizes")
    parser.add_argument("--peers", nargs="*", choices=[*TORCH_MODES, *KERAS_MODES], default=list(TORCH_MODES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5, help="about how long a round is; at least one step")
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    results = []
    for workload in workloads(arguments):
        results.append(compare(*workload, arguments))
        save(results, arguments)
        gc.collect()  # large networks
    if TINY in arguments.networks and arguments.mode != "predict":
        results.append(tiny_step(arguments.threads))
        save(results, arguments)
    print_table(results, arguments.peers)


def save(results: list[dict], arguments) -> None:
    """Writes what there is so far."""
    if arguments.json:
        machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        about = {**machine, "threads": arguments.threads, "versions": versions(), "peers": arguments.peers}
        with open(arguments.json, "w") as file:
            json.dump({**about, "results": results}, file, indent=2)


if __name__ == "__main__":
    main()
