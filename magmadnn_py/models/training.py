"""The training loop: compile, fit, evaluate, predict.

A whole step (forward, backward, update, metrics) is one program. With arrays, many steps run in one native call; the
loop comes back to Python about ten times a second to show progress, or after each step where a callback asks for it.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from .. import losses as losses_module
from .. import metrics as metrics_module
from .. import optimizers as optimizers_module
from ..callbacks import CallbackList
from ..config import floatx
from ..data import ArrayData, BatchData, make_data
from ..graph.symbolic import leaves, map_structure
from ..runtime.program import SharedMemory
from ..runtime.tensor import Tensor
from ..saving import deserialize, serialize
from .arguments import checked_batch_size, class_weights, make_validation_data, positive, step_count, validates
from .compiled import CompiledLoss, CompiledMetrics
from .pace import Pace, runs
from .steps import Steps

#: What a compile config may hold.
_COMPILE_ARGUMENTS = (
    "optimizer", "loss", "loss_weights", "metrics", "weighted_metrics", "run_eagerly", "steps_per_execution",
)  # fmt: skip


class Trainer(Steps):
    """What makes a layer a model. Mixed into `Model`."""

    def _init_training(self) -> None:
        self.optimizer = None
        self.stop_training = False
        self.history = None
        self.run_eagerly = False
        self.deterministic = False
        self.steps_per_execution = 1
        self.memory_limit = None
        self.epoch = 0  # epochs trained so far, for checkpoints
        self._compile_arguments: dict | None = None
        self._compiled_loss: CompiledLoss | None = None
        self._compiled_metrics: CompiledMetrics | None = None
        self._loss_tracker = None
        self._programs: dict = {}
        self._layout_version = -1
        self._flags: tuple = (-1, ())
        self._memory = SharedMemory()
        self._shuffle_state = None
        self._output_types: list = []

    # compile

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        loss_weights=None,
        metrics=None,
        weighted_metrics=None,
        run_eagerly=False,
        steps_per_execution=1,
        jit_compile="auto",
        auto_scale_loss=True,
        memory_limit=None,
        deterministic=False,
    ):
        """Chooses how the model is trained.

        Args:
            optimizer: a name, a config or an `Optimizer`.
            loss: a name, function or `Loss`; a list or a dict by output name for several outputs.
            loss_weights: factors of the outputs' losses in the total.
            metrics: names, functions or `Metric`s; for several outputs a list of lists or a dict.
            weighted_metrics: the same, but sample weights apply to them.
            run_eagerly: run every op's NumPy reference, node by node, tracing anew at each batch (for debugging).
            steps_per_execution: steps between two calls of batch hooks.
            jit_compile, auto_scale_loss: taken for Keras's sake; programs are always compiled.
            memory_limit: bytes that a step may take, weights and optimizer state included; by default no limit. Where
                it is short, cheap activations are computed a second time in the backward pass instead of kept; a
                limit that even so cannot be met raises MemoryError at the first step. Not part of the saved model.
            deterministic: choose algorithms without timing them, as `MAGMADNN_TUNE=off` does, so that every process
                gets the same bits. Not part of the saved model.

        Raises:
            ValueError: an unknown name, or a number that is not positive.
        """
        self._compile_arguments = {
            "optimizer": optimizer,
            "loss": loss,
            "loss_weights": loss_weights,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
            "run_eagerly": run_eagerly,
            "steps_per_execution": steps_per_execution,
        }
        if memory_limit is not None and not memory_limit > 0:
            raise ValueError(f"memory_limit: got {memory_limit!r}, wanted a positive number of bytes, or None")
        if not isinstance(steps_per_execution, int) or steps_per_execution < 1:
            raise ValueError(f"steps_per_execution: got {steps_per_execution!r}, wanted a positive integer")
        self.optimizer = optimizers_module.get(optimizer)
        for entry in leaves(loss):
            if entry is not None:
                losses_module.as_loss(entry)
        self.run_eagerly = bool(run_eagerly)
        self.deterministic = bool(deterministic)
        self.steps_per_execution = steps_per_execution
        self.memory_limit = memory_limit
        self._loss_tracker = metrics_module.Mean(name="loss", dtype=floatx())
        self._compiled_loss = None
        self._compiled_metrics = None
        self._programs = {}

    @property
    def compiled(self) -> bool:
        return self._compile_arguments is not None

    def get_compile_config(self) -> dict | None:
        """What `compile` was given, as a config; None if it was not called."""
        if self._compile_arguments is None:
            return None
        return serialize({**self._compile_arguments, "optimizer": self.optimizer})

    def compile_from_config(self, config: dict) -> None:
        """Compiles with what `get_compile_config` returned, or Keras wrote; makes the optimizer's state if it can."""
        given = deserialize(config)
        self.compile(**{name: value for name, value in given.items() if name in _COMPILE_ARGUMENTS})
        if self.built and self.trainable_variables:
            self.optimizer.build(self.trainable_variables)

    def _require_compiled(self, method: str) -> None:
        if not self.compiled:
            raise ValueError(f"model '{self.name}': {method}() needs compile() first")

    def _compile_for_outputs(self, y_pred) -> None:
        if self._compiled_loss is not None:
            return
        count = len(leaves(y_pred))
        if isinstance(y_pred, dict) and len(y_pred) == count:
            names = list(y_pred)
        elif len(self.output_names) == count:
            names = self.output_names
        else:
            names = [f"output_{i}" for i in range(count)]
        given = self._compile_arguments
        self._compiled_loss = CompiledLoss(given["loss"], given["loss_weights"], names)
        self._compiled_metrics = CompiledMetrics(given["metrics"], given["weighted_metrics"], given["loss"], names)
        several = len(names) > 1
        self._part_trackers = {
            name: metrics_module.Mean(name=f"{name}_loss", dtype=floatx()) for name in names if several
        }

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The scalar to minimise; override it for a loss that compile() cannot express.

        It holds `losses`, which is what layers add with `add_loss` and the penalties on weights; an override adds them
        itself, or calls this one.
        """
        total, parts = self._compiled_loss(y, y_pred, sample_weight)
        rows = leaves(y_pred)[0].shape[0]
        for name, part in parts.items():
            if name in self._part_trackers:
                self._part_trackers[name].update_state(part, sample_weight=float(rows))
        for added in self.losses:
            total = added if total is None else total + added
        if total is None:
            raise ValueError("loss: compile(loss=...) names no loss for any output, and no layer adds one")
        return total

    @property
    def metrics(self) -> list:
        """The loss tracker and all metrics."""
        found = [self._loss_tracker] if self._loss_tracker is not None else []
        if self._compiled_metrics is not None:
            found += [*self._part_trackers.values(), *self._compiled_metrics.metrics]
        return found

    @property
    def metrics_names(self) -> list[str]:
        return [metric.name for metric in self.metrics]

    def reset_metrics(self) -> None:
        for metric in self.metrics:
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, float]:
        """Current values by name, sorted as Keras's logs are."""
        results = {"loss": self._loss_tracker.result()}
        if self._compiled_metrics is not None:
            results.update({tracker.name: tracker.result() for tracker in self._part_trackers.values()})
            results.update(self._compiled_metrics.results())
        return {name: float(np.asarray(value)) for name, value in sorted(results.items())}

    # fit

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        """Trains the model and returns its `History`.

        Args:
            x, y: arrays (or nestings of them) with one row per sample; or x a generator, `PyDataset` or loader of
                (x, y) or (x, y, sample_weight) batches.
            batch_size: 32 by default; not with a dataset that brings batches.
            validation_split: the last fraction of the samples, taken before shuffling, is not trained on.
            validation_data: (x, y), (x, y, sample_weight), or a dataset.
            shuffle: a new order of the samples at each epoch; "batch" shuffles inside the batches alone.
            class_weight: weight per class number; classes not named weigh 1.
            sample_weight: weight per sample.
            steps_per_epoch: ends epochs early; needed for an endless generator.

        The last, smaller batch is trained too and counts by its size.

        Raises:
            ValueError: arrays, labels or arguments that do not fit; the message names them.
        """
        self._require_compiled("fit")
        data = make_data(x, y, sample_weight, steps_per_epoch)
        validation = None
        if validation_data is not None:
            validation = make_validation_data(validation_data, validation_steps)
        elif validation_split:
            if not isinstance(data, ArrayData):
                raise ValueError("validation_split: needs arrays, got a dataset that brings batches")
            data, validation = data.split(validation_split)
        data = self._weighted(data, class_weight)
        batch_size = checked_batch_size(batch_size, data)
        positive(epochs, "epochs")
        positive(initial_epoch + 1, "initial_epoch + 1")
        for argument, value in (("steps_per_epoch", steps_per_epoch), ("validation_steps", validation_steps)):
            if value is not None:
                positive(value, argument)
        if not isinstance(validation_freq, list | tuple | set):
            positive(validation_freq, "validation_freq")
        steps = step_count(data, batch_size, steps_per_epoch)
        callbacks = CallbackList(
            callbacks, model=self, verbose=verbose, epochs=epochs, steps=steps, samples=getattr(data, "rows", None)
        )
        self.stop_training = False
        self._prepare("train", data, batch_size)
        if validation is not None:
            validation_batch_size = checked_batch_size(validation_batch_size or batch_size, validation, "validation_")
            self._prepare("test", validation, validation_batch_size)
        callbacks.on_train_begin()
        if callbacks.initial_epoch is not None:
            initial_epoch = callbacks.initial_epoch
        try:
            for epoch in range(initial_epoch, epochs):
                self.reset_metrics()
                callbacks.on_epoch_begin(epoch)
                self._run_epoch("train", data, batch_size, steps_per_epoch, callbacks, shuffle, class_weight)
                logs = self.get_metrics_result()
                if validation is not None and validates(epoch, validation_freq):
                    logs.update(self._validate(validation, validation_batch_size, validation_steps, callbacks))
                self.epoch = epoch + 1
                callbacks.on_epoch_end(epoch, logs)
                if self.stop_training:
                    break
        finally:
            self.optimizer.finalize_variable_values()
            callbacks.on_train_end()
        return self.history

    def _prepare(self, kind: str, data, batch_size) -> None:
        """Makes the program and looks at the targets: what does not fit is found before anything is changed."""
        if isinstance(data, ArrayData):
            self._program(kind, data, min(batch_size, len(data)))
            self._check_targets(data)

    def _weighted(self, data, class_weight):
        if class_weight is None or not isinstance(data, ArrayData):
            return data
        if data.sample_weight is not None:
            raise ValueError("class_weight, sample_weight: got both, wanted one of them")
        targets = leaves(data.y)
        if len(targets) != 1 or targets[0] is None:
            raise ValueError("class_weight: works for models with one output and targets")
        return ArrayData(data.x, data.y, class_weights(targets[0].numpy(), class_weight))

    def _run_epoch(self, kind, data, batch_size, steps_limit, callbacks, shuffle=False, class_weight=None) -> None:
        if isinstance(data, ArrayData):
            order = self._order(len(data), batch_size, shuffle) if shuffle else None
            self._run_arrays(kind, data, batch_size, steps_limit, callbacks, order)
            return
        step = 0
        for batch in data.epoch(self._shuffle_generator() if shuffle else None):
            batch = self._weighted(batch, class_weight)
            callbacks.on_batch_begin(kind, step)
            program = self._program(kind, batch, len(batch))
            self._check_targets(batch)
            self._before_step()
            program.run_batches(batch.tensors(), 0, len(batch), 1)
            callbacks.on_batch_end(kind, step, self.get_metrics_result())
            step += 1
            if kind == "train" and self.stop_training:
                return
        if not step:
            raise ValueError(
                "x: the dataset gave no batch, wanted at least one (a generator is used up after an epoch: give one "
                "that does not end, and the number of steps)"
            )
        if step < (data.steps or 0):
            warnings.warn(f"the dataset gave {step} batches, wanted {data.steps} for an epoch", stacklevel=3)

    def _run_arrays(self, kind, data: ArrayData, batch_size, steps_limit, callbacks, order) -> None:
        tensors = data.tensors()
        for step, first, batch, count in self._paced_runs(kind, len(data), batch_size, steps_limit, callbacks):
            callbacks.on_batch_begin(kind, step)
            self._before_step()
            self._program(kind, data, batch).run_batches(tensors, first, batch, count, order)
            logs = self.get_metrics_result() if callbacks.wants_batch_logs(kind) else {}
            callbacks.on_batch_end(kind, step + count - 1, logs)
            if kind == "train" and self.stop_training:
                return

    def _paced_runs(self, kind: str, rows: int, batch_size: int, steps_limit, callbacks):
        """(step, first row, batch, number of steps) of each native call."""
        step = 0
        pace = Pace(self._steps_per_call(callbacks, kind))
        for first, batch, steps in runs(rows, batch_size, steps_limit):
            done = 0
            while done < steps:
                count = min(pace.steps, steps - done)
                start = time.perf_counter()
                yield step, first + done * batch, batch, count
                pace.update(count, time.perf_counter() - start)
                done += count
                step += count

    def _steps_per_call(self, callbacks, kind: str) -> int | None:
        """A fixed number of steps between returns to Python, or None for as many as the pace allows."""
        if self.run_eagerly or getattr(self.optimizer, "host_schedule", False):
            return 1
        return self.steps_per_execution if callbacks.needs_batch_hooks(kind) else None

    def _before_step(self) -> None:
        if getattr(self.optimizer, "host_schedule", False):
            self.optimizer.update_host_schedule()

    def _shuffle_generator(self) -> np.random.Generator:
        """A generator of its own for each epoch: (seed, epochs shuffled so far) fixes what it gives."""
        if self._shuffle_state is None:
            self._shuffle_state = [int(np.random.randint(2**31)), 0]
        seed, count = self._shuffle_state
        self._shuffle_state = [seed, count + 1]
        return np.random.Generator(np.random.Philox(key=[seed, count]))

    def _order(self, rows: int, batch_size: int, shuffle) -> Tensor:
        generator = self._shuffle_generator()
        if shuffle != "batch":
            return Tensor.from_array(generator.permutation(rows).astype(np.int64))
        order = np.arange(rows)
        for first in range(0, rows, batch_size):
            generator.shuffle(order[first : first + batch_size])
        return Tensor.from_array(order)

    # evaluate and predict

    def _validate(self, validation, batch_size, steps, callbacks) -> dict[str, float]:
        self.reset_metrics()
        callbacks.on_test_begin()
        self._run_epoch("test", validation, batch_size, steps, callbacks)
        logs = self.get_metrics_result()
        callbacks.on_test_end(logs)
        return {f"val_{name}": value for name, value in logs.items()}

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
    ):
        """Loss and metrics on the given data, in inference mode.

        Returns the loss alone if there are no metrics, else a list in the order of `metrics`; a dict by name with
        `return_dict=True`.
        """
        self._require_compiled("evaluate")
        data = make_data(x, y, sample_weight, steps)
        batch_size = checked_batch_size(batch_size, data)
        count = step_count(data, batch_size, steps)
        if not isinstance(callbacks, CallbackList):
            callbacks = CallbackList(callbacks, model=self, verbose=verbose, epochs=1, steps=count, mode="test")
        self._prepare("test", data, batch_size)
        self.reset_metrics()
        callbacks.on_test_begin()
        self._run_epoch("test", data, batch_size, steps, callbacks)
        logs = self.get_metrics_result()
        callbacks.on_test_end(logs)
        return self._returned(logs, return_dict)

    def _returned(self, logs: dict[str, float], return_dict: bool):
        if return_dict:
            return logs
        ordered = [logs["loss"], *(value for name, value in logs.items() if name != "loss")]
        return ordered[0] if len(ordered) == 1 else ordered

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """The model's outputs for the given inputs, in inference mode, as NumPy arrays.

        No rows give empty arrays of the right shape.
        """
        data = make_data(x, None, None, steps)
        if isinstance(data, ArrayData):
            batch_size = 32 if batch_size is None else batch_size
            positive(batch_size, "batch_size")
        count = step_count(data, batch_size, steps)
        callbacks = CallbackList(callbacks, model=self, verbose=verbose, epochs=1, steps=count, mode="predict")
        callbacks.on_predict_begin()
        if isinstance(data, ArrayData):
            results = self._predict_arrays(data, batch_size, steps, callbacks)
        else:
            results = self._predict_batches(data, callbacks)
        callbacks.on_predict_end()
        found = iter(results)
        return map_structure(lambda leaf: next(found), self._output_structure)

    def _predict_arrays(self, data: ArrayData, batch_size: int, steps_limit, callbacks) -> list[np.ndarray]:
        rows = len(data) if steps_limit is None else min(len(data), steps_limit * batch_size)
        example = self._program("predict", data, max(1, min(batch_size, rows)))
        results = [Tensor((rows, *value.shape[1:]), value.dtype) for value in example.graph.outputs]
        for step, first, batch, count in self._paced_runs("predict", rows, batch_size, None, callbacks):
            callbacks.on_batch_begin("predict", step)
            program = self._program("predict", data, batch)
            program.run_batches(data.tensors(), first, batch, count, None, results)
            callbacks.on_batch_end("predict", step + count - 1, {})
        return [result.numpy() for result in results]

    def _predict_batches(self, data: BatchData, callbacks) -> list[np.ndarray]:
        parts = []
        silent = CallbackList(verbose=0, mode="predict")
        for step, batch in enumerate(data.epoch()):
            callbacks.on_batch_begin("predict", step)
            parts.append(self._predict_arrays(ArrayData(batch.x), max(1, len(batch)), None, silent))
            callbacks.on_batch_end("predict", step, {})
        if not parts:
            raise ValueError("x: the dataset gave no batch, wanted at least one")
        return [np.concatenate(outputs) for outputs in zip(*parts, strict=True)]

    # Single batches

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        """One training step; returns this batch's loss and metrics."""
        self._require_compiled("train_on_batch")
        return self._on_batch("train", self._weighted(ArrayData(x, y, sample_weight), class_weight), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """Loss and metrics of one batch, in inference mode."""
        self._require_compiled("test_on_batch")
        return self._on_batch("test", ArrayData(x, y, sample_weight), return_dict)

    def _on_batch(self, kind: str, data: ArrayData, return_dict: bool):
        if not len(data):
            raise ValueError("x: got no rows, wanted at least one")
        program = self._program(kind, data, len(data))
        self._check_targets(data)
        self.reset_metrics()
        self._before_step()
        program.run_batches(data.tensors(), 0, len(data), 1)
        return self._returned(self.get_metrics_result(), return_dict)

    def predict_on_batch(self, x):
        """The model's outputs for one batch."""
        return self.predict(x, batch_size=max(1, len(ArrayData(x))), verbose=0)
