"""Training speed of this project beside its peers: whole steps through the public `fit`, alternating in one run.

    python benchmarks/compare.py [--networks lenet5 mnist_convnet] [--batch 128] [--threads 2] [--rounds 7] [--json F]

Each round trains every contender on the same images, in turn; the figures are medians over the rounds. PyTorch takes
part in its default and its channels-last layout, Keras (on JAX and on torch) where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time

# A setting for other libraries' sake that slows current ones down.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np  # noqa: E402


def images(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images in the shape of MNIST's; two thirds of the pixels are zero, as there."""
    generator = np.random.default_rng(0)
    x = generator.random((count, 28, 28, 1), dtype=np.float32)
    x *= generator.random(x.shape) < 0.35
    return x, generator.integers(0, 10, count)


class Ours:
    """This project: one call of `fit` per round."""

    name = "magmadnn_py"

    def __init__(self, network: str, batch: int, x, y, threads: int):
        import magmadnn_py as mdnn
        from magmadnn_py import applications

        mdnn.set_threads(threads)
        builders = {"lenet5": applications.LeNet5, "mnist_convnet": applications.mnist_convnet, "mlp": applications.MLP}
        self.model = builders[network]()
        optimizer = mdnn.optimizers.SGD(0.01, momentum=0.9)
        self.model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        self.x, self.y, self.batch = x, y, batch

    def round(self) -> None:
        self.model.fit(self.x, self.y, batch_size=self.batch, epochs=1, verbose=0)


class Torch:
    """PyTorch's usual loop over shuffled batches of tensors in memory."""

    def __init__(self, network: str, batch: int, x, y, threads: int, channels_last: bool):
        import torch
        from torch import nn

        torch.set_num_threads(threads)
        self.torch = torch
        self.name = "torch channels-last" if channels_last else "torch default"
        layers = {
            "lenet5": lambda: [
                nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
            ],
            "mnist_convnet": lambda: [
                nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                nn.Flatten(), nn.Dropout(0.5), nn.Linear(1600, 10),
            ],
            "mlp": lambda: [
                nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10),
            ],
        }  # fmt: skip
        self.model = nn.Sequential(*layers[network]())
        self.x = torch.tensor(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
        if channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.y = torch.tensor(y)
        self.batch = batch
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def round(self) -> None:
        order = self.torch.randperm(len(self.x))
        for first in range(0, len(order), self.batch):
            rows = order[first : first + self.batch]
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.torch.nn.functional.cross_entropy(self.model(self.x[rows]), self.y[rows])
            loss.backward()
            self.optimizer.step()
        loss.item()


class Keras:
    """Keras in a process of its own, because its backend is chosen at import; it trains on request."""

    def __init__(self, network: str, batch: int, x, y, threads: int, backend: str):
        self.name = f"keras ({backend})"
        # Passive: its threads must not spin while the others are measured.
        settings = {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        environment = {**os.environ, **settings}
        command = [sys.executable, __file__, "--keras-worker", network, str(batch), str(len(x))]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def round(self) -> float:
        """Returns the seconds measured inside the other process."""
        self.process.stdin.write("round\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith("seconds "):
            if not line:
                raise RuntimeError(f"{self.name} ended")
        return float(line.split()[1])


def keras_worker(network: str, batch: int, count: int) -> None:
    import keras
    from keras import layers

    x, y = images(count)
    stacks = {
        "lenet5": [(20, 5), (50, 5)],
        "mnist_convnet": [(32, 3), (64, 3)],
        "mlp": [],
    }
    stack = [layers.Input((28, 28, 1))]
    for filters, size in stacks[network]:
        stack += [layers.Conv2D(filters, size, activation="relu"), layers.MaxPooling2D(2)]
    stack.append(layers.Flatten())
    if network == "mnist_convnet":
        stack.append(layers.Dropout(0.5))
    units = {"lenet5": [500], "mnist_convnet": [], "mlp": [512, 512]}[network]
    stack += [layers.Dense(n, activation="relu") for n in units] + [layers.Dense(10, activation="softmax")]
    model = keras.Sequential(stack)
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    for _ in sys.stdin:
        start = time.perf_counter()
        model.fit(x, y, batch_size=batch, epochs=1, verbose=0)
        print("seconds", time.perf_counter() - start, flush=True)


def contenders(network: str, batch: int, x, y, threads: int) -> list:
    found = [Ours(network, batch, x, y, threads)]
    if importlib.util.find_spec("torch"):
        found += [Torch(network, batch, x, y, threads, channels_last) for channels_last in (False, True)]
    if importlib.util.find_spec("keras"):
        found += [
            Keras(network, batch, x, y, threads, backend)
            for backend in ("jax", "torch")
            if importlib.util.find_spec(backend)
        ]
    return found


def compare(network: str, batch: int, threads: int, rounds: int, count: int) -> dict:
    x, y = images(count)
    competitors = contenders(network, batch, x, y, threads)
    seconds: dict[str, list[float]] = {c.name: [] for c in competitors}
    for number in range(rounds + 1):
        for competitor in competitors:
            start = time.perf_counter()
            inside = competitor.round()
            taken = inside if inside is not None else time.perf_counter() - start
            if number:  # the first round warms up
                seconds[competitor.name].append(taken)
    rates = {name: count / statistics.median(times) for name, times in seconds.items()}
    peers = {name: rate for name, rate in rates.items() if name.startswith("torch")}
    print(f"\n{network}, batch {batch}, {threads} threads, median of {rounds} rounds of {count} images")
    for name, rate in rates.items():
        times = seconds[name]
        spread = (max(times) - min(times)) / statistics.median(times)
        ours = rates["magmadnn_py"] / rate
        print(f"  {name:22} {rate:10,.0f} images/s   spread {100 * spread:4.0f} %   ours is {ours:5.2f} x")
    ratio = rates["magmadnn_py"] / max(peers.values()) if peers else None
    if ratio:
        print(f"  against torch's best: {ratio:.2f} x")
    return {"network": network, "batch": batch, "threads": threads, "images_per_second": rates, "ratio_to_torch": ratio}


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
    print(f"\n8-8-2 dense network, batch 32: {step:.1f} microseconds per step (shuffling included)")
    return {"network": "8-8-2", "microseconds_per_step": step}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=["mnist_convnet", "lenet5"])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=128 * 60)
    parser.add_argument("--json")
    parser.add_argument("--keras-worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.keras_worker:
        network, batch, count = arguments.keras_worker
        keras_worker(network, int(batch), int(count))
        return
    results = [
        compare(network, arguments.batch, arguments.threads, arguments.rounds, arguments.images)
        for network in arguments.networks
    ]
    results.append(tiny_step(arguments.threads))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "results": results}, file, indent=2)


if __name__ == "__main__":
    main()
