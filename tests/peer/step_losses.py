"""What the comparisons of training runs watch."""

from magmadnn_py import callbacks


class StepLosses(callbacks.Callback):
    """The loss of each step, from the running means that batch hooks are given."""

    def on_train_begin(self, logs=None):
        self.losses, self.total = [], 0.0

    def on_train_batch_end(self, batch, logs=None):
        total = logs["loss"] * (batch + 1)
        self.losses.append(total - self.total)
        self.total = total
