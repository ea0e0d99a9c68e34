"""Intersection over union of classes, for segmentation."""

from __future__ import annotations

from .. import ops
from ..graph.node import op_class
from ..losses.matching import plain
from ..ops.function import convert, function
from .metric import STATE_DTYPE, Metric, contents
from .reduction import ratio


@function
def _add_pairs(matrix, y_true, y_pred, weight, num_classes, ignore_class):
    """The matrix of counts by (true class, predicted class), with a batch's added."""
    labels, chosen = (ops.reshape(ops.cast(convert(y), "int32"), (-1,)) for y in (y_true, y_pred))
    if labels.shape != chosen.shape:
        raise ValueError(f"IoU: y_true: got {labels.shape[0]} classes, wanted {chosen.shape[0]}, as in y_pred")
    if weight is None:
        factor = ops.ones_like(labels, dtype=STATE_DTYPE)
    else:
        factor = ops.cast(convert(weight), STATE_DTYPE)
        shape = convert(y_true).shape
        factor = ops.reshape(factor, factor.shape + (1,) * (len(shape) - factor.ndim))
        factor = ops.reshape(ops.broadcast_to(factor, shape), (-1,))
    if ignore_class is not None:
        valid = ops.not_equal(labels, ignore_class)
        factor, labels = ops.where(valid, factor, 0.0), ops.where(valid, labels, 0)
    counts = op_class("scatter_add")(0, num_classes**2)(labels * num_classes + chosen, factor)
    return convert(matrix) + ops.reshape(counts, (num_classes, num_classes))


class IoU(Metric):
    """The mean over some classes of true positives / (true positives + false positives + false negatives).

    Classes that do not occur do not count.

    Args:
        num_classes: class numbers are 0 to num_classes - 1.
        target_class_ids: the classes whose mean is taken.
        ignore_class: a true class whose pixels do not count.
        sparse_y_true, sparse_y_pred: whether they hold class numbers; else scores along `axis`.
    """

    direction = "up"

    def __init__(
        self,
        num_classes,
        target_class_ids,
        name=None,
        dtype=None,
        ignore_class=None,
        sparse_y_true=True,
        sparse_y_pred=True,
        axis=-1,
    ):
        super().__init__(dtype, name)
        self.num_classes, self.target_class_ids = num_classes, list(target_class_ids)
        if max(self.target_class_ids, default=0) >= num_classes:
            raise ValueError(f"IoU: target_class_ids: got {self.target_class_ids}, wanted classes below {num_classes}")
        self.ignore_class, self.axis = ignore_class, axis
        self.sparse_y_true, self.sparse_y_pred = sparse_y_true, sparse_y_pred
        self.total_cm = self.add_variable((num_classes, num_classes), name="total_confusion_matrix")

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        y_true, y_pred = plain(y_true), plain(y_pred)
        y_true = y_true if self.sparse_y_true else ops.argmax(y_true, axis=self.axis)
        y_pred = y_pred if self.sparse_y_pred else ops.argmax(y_pred, axis=self.axis)
        options = {"num_classes": self.num_classes, "ignore_class": self.ignore_class}
        args = (contents(self.total_cm), y_true, y_pred, plain(sample_weight))
        self.total_cm.assign(_add_pairs(*args, **options))

    def result(self):
        return _mean_overlap(contents(self.total_cm), tuple(self.target_class_ids), dtype=self.dtype)

    def get_config(self) -> dict:
        names = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@function
def _mean_overlap(matrix, classes: tuple[int, ...], dtype):
    matrix = convert(matrix)
    both = ops.sum(matrix * ops.eye(matrix.shape[0], dtype=STATE_DTYPE), axis=1)
    union = ops.sum(matrix, axis=0) + ops.sum(matrix, axis=1) - both
    both, union = (ops.take(x, list(classes), axis=0) for x in (both, union))
    occurs = ops.cast(union > 0.0, STATE_DTYPE)
    return ratio(ops.sum(ratio(both, union, STATE_DTYPE)), ops.sum(occurs), dtype)


class BinaryIoU(IoU):
    """IoU of class 0, class 1 or both, for scores that `threshold` makes classes."""

    def __init__(self, target_class_ids=(0, 1), threshold=0.5, name=None, dtype=None):
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true, y_pred, sample_weight=None) -> None:
        # Like Keras: a score at the threshold is of class 1.
        super().update_state(y_true, ops.greater_equal(plain(y_pred), self.threshold), sample_weight)

    def get_config(self) -> dict:
        own = {"target_class_ids": self.target_class_ids, "threshold": self.threshold}
        return {**Metric.get_config(self), **own}


class MeanIoU(IoU):
    """IoU averaged over all classes; arguments as for `IoU`."""

    def __init__(
        self,
        num_classes,
        name=None,
        dtype=None,
        ignore_class=None,
        sparse_y_true=True,
        sparse_y_pred=True,
        axis=-1,
    ):
        classes = range(num_classes)
        super().__init__(num_classes, classes, name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["target_class_ids"]
        return config


class OneHotIoU(IoU):
    """`IoU` of one-hot targets, and of scores unless `sparse_y_pred`."""

    def __init__(
        self,
        num_classes,
        target_class_ids,
        name=None,
        dtype=None,
        ignore_class=None,
        sparse_y_pred=False,
        axis=-1,
    ):
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["sparse_y_true"]
        return config


class OneHotMeanIoU(MeanIoU):
    """`MeanIoU` of one-hot targets, and of scores unless `sparse_y_pred`."""

    def __init__(self, num_classes, name=None, dtype=None, ignore_class=None, sparse_y_pred=False, axis=-1):
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict:
        config = super().get_config()
        del config["sparse_y_true"]
        return config
