"""The losses and metrics of a compiled model, matched to its outputs."""

from __future__ import annotations

import itertools

from .. import losses as losses_module
from .. import metrics as metrics_module
from ..graph.symbolic import leaves


def per_output(given, names: list[str], argument: str) -> list:
    """One entry per output from what the user gave: one for all, a list, or a dict by output name.

    Raises:
        ValueError: the length of the list, or a name in the dict, does not fit the outputs.
    """
    if isinstance(given, dict):
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(f"{argument}: got output names {unknown}, wanted names among {names}")
        return [given.get(name) for name in names]
    if isinstance(given, list | tuple):
        if len(given) != len(names):
            raise ValueError(f"{argument}: got {len(given)} entries, wanted {len(names)}, one per output")
        return list(given)
    return [given] * len(names)


class CompiledLoss:
    """The total loss of all outputs, weighted by `loss_weights`."""

    def __init__(self, loss, loss_weights, output_names: list[str]):
        self.names = output_names
        given = per_output(loss, output_names, "loss")
        self.losses = [losses_module.as_loss(entry) for entry in given]
        weights = per_output(loss_weights, output_names, "loss_weights") if loss_weights is not None else None
        self.weights = [1.0 if w is None else float(w) for w in weights] if weights else [1.0] * len(output_names)

    def __call__(self, y_true, y_pred, sample_weight=None) -> tuple:
        """(total, {output name: its loss}) of graph values; no total where no output has a loss."""
        targets, predictions, weights = match_outputs(self.names, y_true, y_pred, sample_weight)
        parts = {}
        total = None
        for name, loss, factor, target, prediction, weight in zip(
            self.names, self.losses, self.weights, targets, predictions, weights, strict=True
        ):
            if loss is None:
                continue
            if target is None:
                raise ValueError(f"y: output '{name}' has a loss but no target")
            part = loss(target, prediction, sample_weight=weight)
            parts[name] = part
            weighted = part if factor == 1.0 else part * factor
            total = weighted if total is None else total + weighted
        return total, parts


class CompiledMetrics:
    """The metrics of all outputs; those asked for by name take their exact kind from the shapes."""

    def __init__(self, metrics, weighted_metrics, loss, output_names: list[str]):
        self.names = output_names
        self.losses = per_output(loss, output_names, "loss")
        self.given = [
            (_as_lists(metrics, output_names, "metrics"), False),
            (_as_lists(weighted_metrics, output_names, "weighted_metrics"), True),
        ]
        self.entries: list[tuple[int, bool, str, metrics_module.Metric]] | None = None

    def build(self, targets, predictions) -> None:
        self.entries = []
        for lists, weighted in self.given:
            for index, identifiers in enumerate(lists):
                for identifier in identifiers:
                    y_true, y_pred = targets[index], predictions[index]
                    metric = metrics_module.resolve(identifier, self.losses[index], y_true.shape, y_pred.shape)
                    name = identifier if isinstance(identifier, str) else metric.name
                    name = f"{self.names[index]}_{name}" if len(self.names) > 1 else name
                    self.entries.append((index, weighted, self._free_name(name, weighted), metric))

    def _free_name(self, name: str, weighted: bool) -> str:
        """The name, or another if it is taken: "weighted_..." first, as in Keras, then numbered."""
        taken = {entry[2] for entry in self.entries}
        candidates = itertools.chain(
            [name, f"weighted_{name}"] if weighted else [name], (f"{name}_{i}" for i in itertools.count(1))
        )
        return next(candidate for candidate in candidates if candidate not in taken)

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        targets, predictions, weights = match_outputs(self.names, y_true, y_pred, sample_weight)
        if self.entries is None:
            self.build(targets, predictions)
        for index, weighted, _, metric in self.entries:
            weight = weights[index] if weighted else None
            metric.update_state(targets[index], predictions[index], sample_weight=weight)

    @property
    def metrics(self) -> list:
        return [metric for *_, metric in self.entries or ()]

    def results(self) -> dict[str, float]:
        return {name: metric.result() for _, _, name, metric in self.entries or ()}

    def reset_state(self) -> None:
        for metric in self.metrics:
            metric.reset_state()


def _as_lists(given, names: list[str], argument: str) -> list[list]:
    if given is None:
        return [[] for _ in names]
    if isinstance(given, list | tuple) and len(names) == 1:
        return [list(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else list(given)]
    entries = per_output(given, names, argument)
    return [[] if e is None else list(e) if isinstance(e, list | tuple) else [e] for e in entries]


def match_outputs(names: list[str], y_true, y_pred, sample_weight=None) -> tuple[list, list, list]:
    """Targets, predictions and weights as lists, one entry per output."""
    predictions = leaves(y_pred)
    if isinstance(y_true, dict):
        unknown = sorted(set(y_true) - set(names))
        if unknown:
            raise ValueError(f"y: got output names {unknown}, wanted names among {names}")
        targets = [y_true.get(name) for name in names]
    else:
        targets = leaves(y_true)
    if len(targets) != len(predictions):
        raise ValueError(f"y: got {len(targets)} targets, wanted {len(predictions)}, one per output of the model")
    weights = per_output(sample_weight, names, "sample_weight")
    return targets, predictions, weights
