"""Gradient descent by hand: x^2 + c and (x^2)^2 from x = 1, 100 steps each.

python examples/gradient_descent.py
"""

from magmadnn_py import Variable
from magmadnn_py.graph import evaluate, gradients, text


def minimise(y, x: Variable, steps: int = 100, learning_rate: float = 0.05) -> None:
    """Walks down the slope of `y`, which depends on `x`, and prints the way."""
    print("minimise", text(y))
    (slope,) = gradients(y, [x.leaf])
    for step in range(steps + 1):
        if step < 3 or step % 20 == 0:
            print(f"step {step:3}: x = {x.numpy():.6f}, value = {evaluate(y).item():.6f}")
        x.assign_sub(learning_rate * evaluate(slope))


x = Variable(1.0, name="x")
c = Variable(2.0, name="c")
minimise(x.leaf**2 + c, x)

x = Variable(1.0, name="x")
minimise((x.leaf**2) ** 2, x)
