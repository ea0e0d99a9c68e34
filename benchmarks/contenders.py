"""Who takes part in `compare.py`: this project, PyTorch in several modes, Keras on two backends.

A contender has a name; `load(x, y)` gives it channels-last images and labels, `round()` trains on or predicts all of
them once. `round` returns the seconds it took where the caller cannot measure them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

# A setting for other libraries' sake that slows current ones down.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import magmadnn_py as mdnn  # noqa: E402
from magmadnn_py import applications  # noqa: E402

#: Name -> builder of the network.
NETWORKS = {
    "mnist_convnet": applications.mnist_convnet,
    "lenet5": applications.LeNet5,
    "mlp": applications.MLP,
    "resnet20": applications.ResNet20,
    "vgg16": applications.VGG16,
    "resnet50": applications.ResNet50,
    "alexnet": applications.AlexNet,
}
#: Name -> (channels-last layout, compiled).
TORCH_MODES = {
    "torch": (False, False),
    "torch-channels-last": (True, False),
    "torch-compiled": (False, True),
    "torch-channels-last-compiled": (True, True),
}
KERAS_MODES = {"keras-jax": "jax", "keras-torch": "torch"}


class Ours:
    """This project: one call of `fit` or `predict` per round."""

    name = "magmadnn_py"

    def __init__(self, network: str, mode: str, batch: int, threads: int):
        mdnn.set_threads(threads)
        self.model = NETWORKS[network]()
        self.model.compile(mdnn.optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
        self.mode, self.batch = mode, batch

    def load(self, x, y) -> None:
        self.x, self.y = x, y

    def round(self) -> None:
        if self.mode == "train":
            self.model.fit(self.x, self.y, batch_size=self.batch, epochs=1, verbose=0)
        else:
            self.model.predict(self.x, batch_size=self.batch, verbose=0)


class Torch:
    """PyTorch's usual loop over shuffled (in training) batches of tensors in memory."""

    def __init__(self, name: str, module, optimizer, mode: str, batch: int):
        import torch

        self.torch, self.name, self.mode, self.batch, self.optimizer = torch, name, mode, batch, optimizer
        self.channels_last, compiled = TORCH_MODES[name]
        self.run = torch.compile(module) if compiled else module

    def load(self, x, y) -> None:
        self.x = self.torch.from_numpy(x).permute(0, 3, 1, 2)  # channels-last in memory
        if not self.channels_last:
            self.x = self.x.contiguous()
        self.y = self.torch.from_numpy(y)

    def round(self) -> None:
        (self._train if self.mode == "train" else self._predict)()

    def _train(self) -> None:
        order = self.torch.randperm(len(self.x))
        for rows in order.split(self.batch):
            loss = self.torch.nn.functional.cross_entropy(self.run(self.x[rows]), self.y[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        loss.item()

    def _predict(self) -> None:
        with self.torch.inference_mode():
            self.torch.cat([self.run(batch).softmax(1) for batch in self.x.split(self.batch)]).numpy()


def torch_contenders(network: str, mode: str, batch: int, threads: int, names: list[str]):
    """Makes the wanted PyTorch modes one by one; those of one layout share a module."""
    import torch

    from magmadnn_py.benchmarks import torch_networks

    torch.set_num_threads(threads)
    torch.compiler.reset()  # its limit of compilations counts those for earlier networks, whose memory it keeps
    modules: dict[bool, tuple] = {}
    for name in names:
        channels_last, _ = TORCH_MODES[name]
        if channels_last not in modules:
            module = getattr(torch_networks, network)().train(mode == "train")
            if channels_last:
                module = module.to(memory_format=torch.channels_last)
            modules[channels_last] = module, torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
        yield Torch(name, *modules[channels_last], mode, batch)


class Keras:
    """Keras in a process of its own, because its backend is chosen at import; it runs on request."""

    def __init__(self, name: str, network: str, mode: str, batch: int, threads: int):
        self.name = name
        # Passive: its threads must not spin while the others are measured.
        settings = {"KERAS_BACKEND": KERAS_MODES[name], "OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive"}
        command = [sys.executable, __file__, network, mode, str(batch)]
        self.process = subprocess.Popen(
            command, env={**os.environ, **settings}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def load(self, x, y) -> None:
        self._ask(f"load {len(x)}")

    def round(self) -> float:
        return self._ask("round")

    def _ask(self, request: str) -> float:
        """The seconds that the other process took for it."""
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith("seconds "):
            if not line:
                raise RuntimeError("its process ended")
        return float(line.split()[1])

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def keras_worker(network: str, mode: str, batch: int) -> None:
    """The other process of `Keras`: the same network, by way of its config."""
    import keras
    from compare import images

    ours = NETWORKS[network]()
    model = keras.models.model_from_json(ours.to_json())
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "sparse_categorical_crossentropy")
    for line in sys.stdin:
        request, *count = line.split()
        start = time.perf_counter()
        if request == "load":
            x, y = images(int(count[0]), ours.input_shape[1:])
        elif mode == "train":
            model.fit(x, y, batch_size=batch, epochs=1, verbose=0)
        else:
            model.predict(x, batch_size=batch, verbose=0)
        print("seconds", time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    keras_worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))
