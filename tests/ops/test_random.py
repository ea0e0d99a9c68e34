"""Random numbers: the published generator, distributions, dropout, and when numbers repeat."""

import math

import numpy as np
import pytest

from magmadnn_py import ops
from magmadnn_py.benchmarks.cases import random as cases
from magmadnn_py.graph import Trace, gradients
from magmadnn_py.graph.interpret import interpret
from magmadnn_py.graph.symbolic import Symbol
from magmadnn_py.ops import random
from magmadnn_py.ops.random import Dropout, RandomNormal, RandomUniform

from .checks import (
    apply,
    assert_close,
    check_cost_and_split,
    check_kernel,
    check_reference,
    check_reference_gradient,
    parametrize,
)

STATE = np.array([42, 7])

# The known answers that come with Random123, the authors' own implementation: counter, key, words.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize("counter,key,words", KNOWN_ANSWERS)
def test_philox_known_answers(counter, key, words):
    counter, key, words = ([np.uint64(int(word, 16)) for word in text.split()] for text in (counter, key, words))
    assert [int(word) for word in random.philox(np, counter, key)] == [int(word) for word in words]


def test_words_are_the_blocks_in_turn():
    seed, step, stream = 0x123456789ABCDEF, 0x500000007, 9
    words = random.random_words(np, np.array([seed, step]), stream, 10)
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for block in range(2):
        counter = [np.uint64(block), np.uint64(0), np.uint64(stream), np.uint64(7)]
        np.testing.assert_array_equal(words[4 * block : 4 * block + 4], random.philox(np, counter, key))
    np.testing.assert_array_equal(random.random_words(np, np.array([seed, step]), stream, 6), words[:6])


@parametrize(cases.CASES)
def test_reference_has_the_inferred_types(case):
    check_reference(case)


@parametrize(cases.CASES)
def test_cost_and_split(case):
    check_cost_and_split(case)


@parametrize(cases.DROPOUT_CASES)
def test_gradient(case):
    check_reference_gradient(case)


@parametrize(cases.CASES, ["float32", "float64"])
def test_kernel(case, dtype):
    check_kernel(case, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_distribution(dtype):
    (x,) = apply(RandomUniform((200_000,), -1.0, 3.0, dtype, 1), [STATE])
    assert x.min() >= -1 and x.max() <= 3
    counts, _ = np.histogram(x, 50, (-1, 3))
    assert _chi_square(counts, np.full(50, 4000.0)) < 90  # 99.96 % of 49 degrees of freedom


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_distribution(dtype):
    (x,) = apply(RandomNormal((200_000,), 1.0, 2.0, dtype, 1), [STATE])
    assert np.isfinite(x).all()
    assert abs(x.mean() - 1) < 0.02 and abs(x.std() - 2) < 0.02
    assert abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.01


def _chi_square(counts, expected) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


def test_inverse_erf():
    with Trace() as trace:
        x = trace.input((2001,), "float64")
        y = random._inverse_erf(x)
    points = np.linspace(-0.955, 0.955, 2001)
    (got,), _ = interpret(trace.graph([y]), [points])
    np.testing.assert_allclose([math.erf(v) for v in got], points, atol=3e-7)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean(rate):
    (y,) = apply(Dropout(rate, 3), [np.ones(100_000, "float32"), STATE])
    assert set(np.unique(y)) == {0, np.float32(1) / np.float32(1 - rate)}
    assert abs((y == 0).mean() - rate) < 0.01
    assert abs(y.mean() - 1) < 0.03


def test_dropout_gradient_drops_the_same_elements():
    with Trace() as trace:
        x, state = trace.input((50,)), trace.input((2,), "int64")
        y = Dropout(0.5, 1)(x, state)
        (dx,) = gradients(y, [x])
    (values, slopes), _ = interpret(trace.graph([y, dx]), [np.ones(50, "float32"), STATE])
    np.testing.assert_array_equal(values, slopes)


def test_streams_and_steps_give_other_numbers():
    def draw(stream, step, seed=1):
        return apply(RandomUniform((100,), 0.0, 1.0, "float32", stream), [np.array([seed, step])])[0]

    first = draw(0, 0)
    np.testing.assert_array_equal(first, draw(0, 0))
    for other in (draw(1, 0), draw(0, 1), draw(0, 0, 2), draw(0, 0, 1 << 32)):
        assert not np.isin(first, other).any()


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_dropout_names_a_wrong_rate(rate):
    with Trace() as trace, pytest.raises(ValueError, match=f"dropout: rate: got {rate}"):
        ops.dropout(trace.input((3,)), rate)


def test_wrong_arguments_are_named():
    with Trace() as trace:
        state, x = trace.input((2,), "int64"), trace.input((3,))
        with pytest.raises(ValueError, match="dropout: state"):
            Dropout(0.5, 1)(x, x)
        with pytest.raises(ValueError, match="random_normal: dtype: got int32"):
            RandomNormal((3,), 0.0, 1.0, "int32", 1)(state)
        with pytest.raises(ValueError, match="randint: maxval: got 3, wanted more than minval, 3"):
            ops.randint((3,), 3, 3)
    with pytest.raises(ValueError, match="seed: got -1"):
        ops.uniform((3,), seed=-1)


def test_dropout_of_rate_0_is_the_input():
    with Trace() as trace:
        x = trace.input((3,))
        assert ops.dropout(x, 0) is x


# --------------------------------------------------------------------------- with compiled code


def _numbers(count: int = 1):
    return [np.asarray(ops.uniform((50,))) for _ in range(count)]


def test_the_seed_fixes_all_numbers():
    ops.set_seed(3)
    first = _numbers(3)
    ops.set_seed(3)
    again = _numbers(3)
    ops.set_seed(4)
    other = _numbers(1)
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first[0], [*first[1], *first[2], *other[0]]).any()


def test_a_seed_of_its_own_gives_the_same_numbers_at_each_call():
    a, b = (np.asarray(ops.normal((20,), seed=5)) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, np.asarray(ops.normal((20,), seed=6)))


def test_every_run_of_a_program_has_other_numbers():
    from magmadnn_py.runtime.program import Program

    ops.set_seed(1)
    with Trace() as trace:
        values = [ops.uniform((40,)), ops.uniform((40,)), ops.uniform((40,), seed=9)]
    program = Program(trace.graph(values))
    drawn = [np.array(a) for _ in range(2) for a in program.run()]
    assert len(np.unique(np.concatenate(drawn))) == 240
    assert random.random_state().numpy().tolist() == [1, 2]


def test_a_program_gives_what_the_references_give():
    from magmadnn_py.runtime.program import Program

    ops.set_seed(11)
    with Trace() as trace:
        x = trace.input((6, 8))
        values = [ops.dropout(x, 0.5), ops.dropout(x, 0.5, noise_shape=(None, 1)), ops.normal((5,), seed=2)]
    graph = trace.graph(values)
    array = np.ones((6, 8), "float32")
    wanted, _ = interpret(graph, [array])
    for got, reference in zip(Program(graph).run(array), wanted, strict=True):
        assert_close(np.asarray(got), reference)
    assert not np.array_equal(wanted[0], wanted[1])
    assert all(len(set(row)) == 1 for row in wanted[1])


def test_truncated_normal():
    x = np.asarray(ops.truncated_normal((100_000,), 1.0, 0.5, seed=1))
    assert np.abs(x - 1).max() <= 1.0 + 1e-6
    assert abs(x.mean() - 1) < 0.01
    assert abs(x.std() - 0.5 * 0.87962566103423978) < 0.005


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_randint(dtype):
    x = np.asarray(ops.randint((60_000,), 2, 8, dtype, seed=1))
    assert x.dtype == dtype
    values, counts = np.unique(x, return_counts=True)
    assert values.tolist() == [2, 3, 4, 5, 6, 7]
    assert _chi_square(counts, np.full(6, 10_000.0)) < 25


def test_dropout_in_a_described_network():
    y = ops.dropout(Symbol((None, 5)), 0.5)
    assert y.shape == (None, 5)


def test_dropout_at_once():
    x = np.ones((100, 10), "float32")
    y = np.asarray(ops.dropout(x, 0.25, seed=1))
    assert abs((y == 0).mean() - 0.25) < 0.08
    np.testing.assert_array_equal(np.asarray(ops.dropout(x, 1.0)), np.zeros_like(x))
    np.testing.assert_array_equal(np.asarray(ops.dropout(x, 0.0)), x)
