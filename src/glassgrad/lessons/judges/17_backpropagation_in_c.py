"""Judge the loops of a training step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from glassgrad.lessons.exercise import OPEN, Answer, Steps, Verdict
from glassgrad.lessons.hints import judged
from glassgrad.ops.core import Array

STEPS = Steps()


def _flat(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


@STEPS("product", section="Products and distances")
def _product(product: Answer) -> Iterator[Verdict]:
    a, b = _flat(2, 3), _flat(3, 4, seed=1)
    plain = product(2, 4, 3, a.ravel().tolist(), 3, 1, b.ravel().tolist(), 4, 1)
    yield judged(
        plain,
        (a @ b).ravel(),
        (a @ b, "It has to be one flat list, row after row."),
        ((a @ b).T.ravel(), "These are the columns, one after the other. Rows are asked for."),
        ((a[:, -1:] * b[-1:]).ravel(), "Only the last term is there: are the k terms added up?"),
        what="the product of two matrices that lie row after row",
    )
    turned = product(2, 4, 3, a.T.ravel().tolist(), 1, 2, b.T.ravel().tolist(), 1, 3)
    yield judged(
        turned,
        (a @ b).ravel(),
        what="the product of two matrices that lie column after column (the distances are exchanged)",
    )


_Pair = tuple[Sequence[float], Sequence[float]]


class _Distances:
    """The product by distances, which notes the lists that it is called with."""

    def __init__(self) -> None:
        self.calls: list[_Pair] = []

    def __call__(
        self,
        m: int,
        n: int,
        k: int,
        a: Sequence[float],
        a_row: int,
        a_column: int,
        b: Sequence[float],
        b_row: int,
        b_column: int,
    ) -> list[float]:
        self.calls.append((a, b))
        rows = [[a[i * a_row + p * a_column] for p in range(k)] for i in range(m)]
        columns = [[b[p * b_row + j * b_column] for p in range(k)] for j in range(n)]
        return [float(np.dot(row, column)) for row in rows for column in columns]


_BATCH, _INPUTS, _OUTPUTS = 5, 3, 2


def _layer() -> tuple[Array, Array, Array]:
    return _flat(_BATCH, _INPUTS), _flat(_INPUTS, _OUTPUTS, seed=1), _flat(_BATCH, _OUTPUTS, seed=2)


def _by_one_product(calls: list[_Pair], *lists: list[float]) -> Verdict:
    if len(calls) != 1:
        return f"`product` was called {len(calls)} times; once is enough."
    if not all(any(one is known for known in lists) for one in calls[0]):
        return "`product` was called with a copy. Give it the lists as they are, and other distances."
    return None


@STEPS("gradient of the weight", section="Products and distances")
def _weight(weight_gradient: Answer) -> Iterator[Verdict]:
    x, _, dy = _layer()
    product, lists = _Distances(), (x.ravel().tolist(), dy.ravel().tolist())
    found = weight_gradient(product, *lists, _BATCH, _INPUTS, _OUTPUTS)
    if found is ...:
        yield OPEN
    yield judged(
        found,
        (x.T @ dy).ravel(),
        ((dy.T @ x).ravel(), "That is its transpose: the weight has a row for each input."),
        what="the gradient of the weight",
    )
    yield _by_one_product(product.calls, *lists)


@STEPS("gradient of the input", section="Products and distances")
def _input(input_gradient: Answer) -> Iterator[Verdict]:
    _, w, dy = _layer()
    product, lists = _Distances(), (dy.ravel().tolist(), w.ravel().tolist())
    found = input_gradient(product, *lists, _BATCH, _INPUTS, _OUTPUTS)
    if found is ...:
        yield OPEN
    yield judged(
        found,
        (dy @ w.T).ravel(),
        (
            (dy @ w.reshape(_OUTPUTS, _INPUTS)).ravel(),
            "w was read as if it had a row for each output. Its distances are those of its transpose.",
        ),
        ((w @ dy.T).ravel(), "That is its transpose: the input has a row for each example."),
        what="the gradient of the input",
    )
    yield _by_one_product(product.calls, *lists)


class _Counted:
    """A list that counts how often its elements are read."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers, self.reads = numbers, 0

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, at: int | slice) -> float | list[float]:
        found = self.numbers[at]
        self.reads += len(found) if isinstance(found, list) else 1
        return found

    def __setitem__(self, at: int, number: float) -> None:
        self.numbers[at] = number

    def __iter__(self) -> Iterator[float]:
        self.reads += len(self)
        return iter(self.numbers)


_WIDTH, _RATE = 4, 0.1


def _fused(backward_tanh: Answer) -> tuple[list[Array], list[Array], int]:
    """Return what the learner's loop made of the gradient and the bias, what was there, and the number of reads."""
    hidden, given, bias = np.tanh(_flat(_BATCH, _WIDTH)), _flat(_BATCH, _WIDTH, seed=1), _flat(_WIDTH, seed=2)
    gradient, own = _Counted(given.ravel().tolist()), bias.tolist()
    backward_tanh(gradient, hidden.ravel().tolist(), own, _RATE, _BATCH, _WIDTH)
    return [np.array(gradient.numbers).reshape(hidden.shape), np.array(own)], [hidden, given, bias], gradient.reads


@STEPS("one loop", section="One loop for three lines", gaps=("backward_tanh",))
def _loop(backward_tanh: Answer) -> Iterator[Verdict]:
    (gradient, own), (hidden, given, bias), _ = _fused(backward_tanh)
    right = given * (1 - hidden**2)
    yield judged(
        gradient,
        right,
        (given, "`dhidden` is as it was: the gradient of `before` is written over it."),
        (given * (1 - hidden), "The slope of tanh is 1 - y², where y is its result."),
        (given * (1 - np.tanh(hidden) ** 2), "`hidden` is the result of tanh already."),
        (1 - hidden**2, "That is the slope. The chain rule multiplies it with the gradient that comes in."),
        what="the gradient of `before`",
    )
    yield judged(
        own,
        bias - _RATE * right.sum(0),
        (bias, "`bias` is as it was: change the list in place."),
        (bias + _RATE * right.sum(0), "It went up the slope."),
        (bias - right.sum(0), "The rate is missing."),
        (bias - _RATE * given.sum(0), "The sum is that of `dhidden`, before the rule of tanh. `bias` is added inside."),
        (bias - _RATE * right.mean(0), "Slopes add over the rows that share the bias. There is no mean here."),
        (bias - _RATE * right[-1], "Only the last row counts: every row adds its share."),
        what="the bias after the step",
    )


@STEPS("each element once", section="One loop for three lines", gaps=("backward_tanh",))
def _once(backward_tanh: Answer) -> Verdict:
    *_, reads = _fused(backward_tanh)
    most = _BATCH * _WIDTH
    if reads > most:
        return f"{reads} elements of `dhidden` were read, and it has {most}. Use what is computed for both results."
    return None


_CASES: tuple[tuple[tuple[int, int, int], ...], ...] = (
    ((4, 0, 1), (4, 2, 3)),
    ((4, 0, 1), (4, 1, 2)),
    ((4, 0, 2), (2, 1, 3), (4, 3, 5)),
    ((2, 0, 1), (3, 1, 2), (6, 2, 3), (2, 4, 5)),
    ((2, 0, 5), (6, 1, 2), (3, 2, 4), (6, 3, 4), (1, 4, 5), (5, 5, 6)),
)
_LENGTHS = (4, 8, 6, 9, 12)


def _clash(values: Sequence[tuple[int, int, int]], places: Sequence[int]) -> Verdict:
    """Return a hint if two values are in the same place at the same time."""
    known = list(zip(values, places, strict=True))
    for number, ((size, first, last), place) in enumerate(known):
        for (other_size, other_first, other_last), other in known[:number]:
            turn = max(first, other_first)
            if turn <= min(last, other_last) and place < other + other_size and other < place + size:
                return (
                    f"Of {list(values)}, {(other_size, other_first, other_last)} at {other} and {(size, first, last)} "
                    f"at {place} overlap, and both are alive in turn {turn}."
                )
    return None


@STEPS("arena", section="Memory")
def _arena(arena: Answer) -> Iterator[Verdict]:
    for values, length in zip(_CASES, _LENGTHS, strict=True):
        places = arena(list(values))
        if places is ...:
            yield OPEN
        if not isinstance(places, list) or len(places) != len(values) or not all(isinstance(at, int) for at in places):
            yield f"arena has to return a list of {len(values)} whole numbers, one place for each value."
        if min(places) < 0:
            yield "A place is below 0."
        yield _clash(values, places)
        used = max(place + size for (size, *_), place in zip(values, places, strict=True))
        if used == sum(size for size, *_ in values) > length:
            yield "Nothing shares memory: a value may lie where another one lay that nobody reads any more."
        if used > length:
            yield f"{list(values)} took {used} numbers, and {length} are enough. Which value comes first?"
