"""The programs of a model: one for each kind of step (train, test, predict) and shape of batch."""

from __future__ import annotations

import inspect
from contextlib import nullcontext

from .. import _core, ops
from .. import optimizers as optimizers_module
from ..config import floatx
from ..data import ArrayData
from ..graph import Trace, gradients
from ..graph.symbolic import leaves, map_structure
from ..graph.types import is_floating
from ..layers.layer import trainable_version, training_mode
from ..passes import FORWARD_PASSES, run_passes
from ..runtime.kernels import no_algorithm
from ..runtime.program import Program
from ..runtime.tuner import tuned_algorithm, tuning
from .compiled import match_outputs


class Steps:
    """Traces a model's steps and keeps their programs. Part of `Trainer`."""

    # Graphs

    def _train_outputs(self, trace: Trace, x, y, sample_weight) -> list:
        y_pred = self._forward(x, training=True)
        loss = self._total_loss(trace, x, y, y_pred, sample_weight, training=True)
        (loss,) = trace.rewrite(lambda graph: run_passes(graph, FORWARD_PASSES), [loss])
        variables = self.trainable_variables
        loss = self.optimizer.scale_loss(loss)
        found = gradients(loss, [trace.initial(variable) for variable in variables])
        self.optimizer.apply(found, variables)
        return []

    def _test_outputs(self, trace: Trace, x, y, sample_weight) -> list:
        y_pred = self._forward(x, training=False)
        self._total_loss(trace, x, y, y_pred, sample_weight, training=False)
        return []

    def _predict_outputs(self, trace: Trace, x, y, sample_weight) -> list:
        y_pred = self._forward(x, training=False)
        self._output_structure = map_structure(lambda leaf: None, y_pred)
        return leaves(y_pred)

    def _forward(self, x, training: bool):
        with training_mode(training):
            y_pred = self(x)
        self._output_types = [value.type for value in leaves(y_pred)]
        return y_pred

    def _total_loss(self, trace: Trace, x, y, y_pred, sample_weight, training: bool):
        self._compile_for_outputs(y_pred)
        given = {"x": x, "y": y, "y_pred": y_pred, "sample_weight": sample_weight, "training": training}
        if "training" not in inspect.signature(self.compute_loss).parameters:
            del given["training"]
        loss = ops.convert(self.compute_loss(**given))
        if loss.ndim:
            raise ValueError(f"compute_loss: got a loss of shape {loss.shape}, wanted a scalar")
        rows = leaves(y_pred)[0].shape[0]
        self._loss_tracker.update_state(loss, sample_weight=float(rows))
        if y is not None:
            self._compiled_metrics.update_state(y, y_pred, sample_weight)
        return loss

    # Programs

    def _program(self, kind: str, data: ArrayData, batch: int) -> Program:
        """The program for batches like `data`'s of that many rows; kept for the next time."""
        types = repr(map_structure(lambda t: None if t is None else (t.shape[1:], t.dtype), data.structure))
        self._drop_stale_programs()
        key = (kind, batch, types, self._trainable_flags(), _core.get_threads())
        if self.run_eagerly or key not in self._programs:
            self._ensure_built(data, batch)
            if kind == "train":
                self._build_optimizer()
            choose = no_algorithm if self.run_eagerly else tuned_algorithm
            with tuning("off") if self.run_eagerly or self.deterministic else nullcontext():
                program = Program(self._trace(kind, data, batch), self._memory, choose, self.memory_limit)
            if self.run_eagerly:
                return program
            self._drop_stale_programs()  # building the optimizer may have moved the variables
            self._programs[key] = program
        return self._programs[key]

    def _trainable_flags(self) -> tuple[bool, ...]:
        version, flags = self._flags
        if version != trainable_version():
            flags = tuple(layer.trainable for layer in self._flatten_layers())
            self._flags = (trainable_version(), flags)
        return flags

    def _build_optimizer(self) -> None:
        variables = self.trainable_variables
        if not variables:
            raise ValueError(f"model '{self.name}': fit: there are no trainable weights, wanted at least one")
        if self.optimizer.built and set(variables) != set(self.optimizer.trainable_variables):
            raise ValueError(
                f"model '{self.name}': other weights are trainable now than when its optimizer '{self.optimizer.name}' "
                "was first used: call compile() again, with a new optimizer"
            )
        self.optimizer.build(variables)

    def _drop_stale_programs(self) -> None:
        """Programs name the memory of variables: none outlives a change of it (another model's `compile`, say)."""
        version = optimizers_module.layout_version()
        if version != self._layout_version:
            self._programs.clear()
            self._layout_version = version

    def _trace(self, kind: str, data: ArrayData, batch: int):
        outputs = {"train": self._train_outputs, "test": self._test_outputs, "predict": self._predict_outputs}[kind]
        with Trace() as trace:
            x, y, sample_weight = self._placeholders(trace, data, batch)
            graph = trace.graph(outputs(trace, x, y, sample_weight))
        return graph if kind == "train" else run_passes(graph, FORWARD_PASSES)

    def _placeholders(self, trace: Trace, data: ArrayData, batch: int) -> tuple:
        dtypes = iter(self.input_dtypes_for(data.x))

        def x_input(tensor):
            natural = tensor.dtype if tensor.dtype in ("int32", "int64") else floatx()
            return trace.input((batch, *tensor.shape[1:]), next(dtypes, natural), "x")

        def other(label):
            def make(tensor):
                if tensor is None:
                    return None
                dtype = floatx() if is_floating(tensor.dtype) else tensor.dtype
                return trace.input((batch, *tensor.shape[1:]), dtype, label)

            return make

        return (
            map_structure(x_input, data.x),
            map_structure(other("y"), data.y),
            map_structure(other("sample_weight"), data.sample_weight),
        )

    def input_dtypes_for(self, x) -> list[str]:
        """Element types that the model wants for the leaves of `x`; an empty list where any will do."""
        return []

    def _ensure_built(self, data: ArrayData, batch: int) -> None:
        """Makes weights that do not exist yet, by tracing the network once on the data's shapes."""
        if getattr(self, "_functional", None) is None and hasattr(self, "add") and not self.built:
            self.build(data.tensors()[0].shape)
        if not self.built or not self._has_all_weights():
            with Trace() as trace:
                x, _, _ = self._placeholders(trace, data, batch)
                self._forward(x, training=False)

    def _has_all_weights(self) -> bool:
        """A network written as `call` may make weights at its first trace; one of symbols has them from the start."""
        return bool(self._output_types)

    def _check_targets(self, data: ArrayData) -> None:
        """Class labels must name a class of their output: found here, before they index anything."""
        if self._compiled_loss is None or data.y is None or not self._output_types:
            return
        names = self._compiled_loss.names
        targets, _, _ = match_outputs(names, data.y, self._output_types)
        for name, loss, target, type_ in zip(
            names, self._compiled_loss.losses, targets, self._output_types, strict=True
        ):
            if loss is not None and target is not None:
                try:
                    loss.check_targets(target.numpy(), type_.shape)
                except ValueError as error:
                    raise ValueError(f"y: output '{name}': {error}") from None
