"""`magmadnn train ...`: whole trainings by one command."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

train_app = typer.Typer(help="Train a network on a known dataset.", no_args_is_help=True)


class Network(str, enum.Enum):
    lenet5 = "lenet5"
    mnist_convnet = "mnist_convnet"
    mlp = "mlp"


@train_app.callback()
def _group() -> None:
    """Train a network on a known dataset."""


@train_app.command()
def mnist(
    network: Annotated[Network, typer.Option(help="Which network to train.")] = Network.lenet5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help="Images per step.")] = 128,
    optimizer: Annotated[str, typer.Option(help="adam, sgd, rmsprop, ... as in magmadnn_py.optimizers.")] = "adam",
    learning_rate: Annotated[float, typer.Option(min=0.0, help="At the start; falls to zero along a cosine.")] = 2e-3,
    data: Annotated[Path | None, typer.Option(help="Folder with the four idx files, gzipped or not.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Train on the first so many images only.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes weights, order and dropout.")] = 0,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; by default one per core.")] = None,
    output: Annotated[Path, typer.Option(help="Where the model is saved, after each epoch.")] = Path("mnist.keras"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the model saved at --output.")] = False,
    stop_after: Annotated[int | None, typer.Option(min=1, help="End after this epoch, to resume another time.")] = None,
) -> None:
    """Train on MNIST, evaluate on the 10,000 test images, save the model."""
    import magmadnn_py as mdnn
    from magmadnn_py import applications, callbacks, datasets, optimizers, utils

    if threads is not None:
        mdnn.set_threads(threads)
    utils.set_random_seed(seed)
    optimizers.get(optimizer)  # an unknown name ends here, before anything is fetched
    typer.echo("getting MNIST ...")
    (x_train, y_train), (x_test, y_test) = datasets.mnist.load_data(data)
    x_train, y_train = _prepare(x_train[:samples]), y_train[:samples]
    x_test = _prepare(x_test)
    if resume:
        model = mdnn.saving.load_model(output, resume=True)
        typer.echo(f"resuming {output} after epoch {model.epoch}")
    else:
        builders = {"lenet5": applications.LeNet5, "mnist_convnet": applications.mnist_convnet, "mlp": applications.MLP}
        model = builders[network.value]()
        steps = epochs * -(-len(x_train) // batch)
        rule = optimizers.get(optimizer)
        rule.learning_rate = optimizers.schedules.CosineDecay(learning_rate, decay_steps=steps)
        model.compile(optimizer=rule, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.summary()
    checkpoint = callbacks.ModelCheckpoint(str(output), save_freq="epoch")
    start = time.perf_counter()
    model.fit(
        x_train,
        y_train,
        batch_size=batch,
        epochs=min(epochs, stop_after or epochs),
        initial_epoch=model.epoch,
        callbacks=[checkpoint],
    )
    seconds = time.perf_counter() - start
    result = model.evaluate(x_test, y_test, batch_size=max(batch, 128), verbose=0, return_dict=True)
    model.save(output)
    typer.echo(
        f"test accuracy {100 * result['accuracy']:.2f} %, test loss {result['loss']:.4f}, "
        f"trained in {seconds:.1f} s, saved to {output}"
    )


def _prepare(images: np.ndarray) -> np.ndarray:
    """Grey values as float32 from 0 to 1, with a channel axis."""
    return (images.astype(np.float32) / 255.0)[..., None]
