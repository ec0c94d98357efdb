"""Judge the engine: broadcasting, the rules, and the walk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from glassgrad.lessons.exercise import Answer, Names, Steps, Verdict
from glassgrad.lessons.hints import judged

STEPS = Steps()
Array = np.ndarray
Known = tuple[Any, str]

_G = np.arange(24.0).reshape(2, 4, 3) ** 1.5 - 20.0


@STEPS("shrink", section="Broadcasting, backwards")
def _shrink(shrink: Answer) -> Iterator[Verdict]:
    g = _G
    for shape, expected, known in (
        (
            (4, 3),
            g.sum(0),
            [
                (g[0], "Each number was used in both halves: both gradients count. Add them."),
                (g.mean(0), "That is their mean. Slopes add over paths, they are not averaged."),
            ],
        ),
        (
            (2, 4, 1),
            g.sum(2, keepdims=True),
            [
                (g.sum(2), "The axis has gone. The argument has it, with length 1, and so must its gradient."),
                (g[:, :, :1], "One column of three was taken. All three came from the same number: add them."),
            ],
        ),
        (
            (1, 3),
            g.sum((0, 1)).reshape(1, 3),
            [
                (g.sum(0).sum(0), "The axis of length 1 has to stay: keepdims."),
                (g.sum(0), "The axis in front is summed; the one of length 1 was stretched as well."),
                (g.sum(1), "The axis of length 1 is summed; the one in front was added as well."),
            ],
        ),
        ((), g.sum(), []),
        ((2, 4, 3), g, [(g.sum(), "Nothing was stretched here, so sum nothing.")]),
    ):
        yield judged(shrink(g.copy(), shape), expected, *known, what=f"shrink(g, {shape}) of a g with shape {g.shape}")


@STEPS("receive", section="Adding in place, and whose array it is")
def _receive(receive: Answer, given: Names) -> Iterator[Verdict]:
    t, shared, second = given["Tensor"]([0.0, 0.0]), np.array([1.0, 2.0]), np.array([10.0, 20.0])
    receive(t, shared)
    if t.grad is None:
        yield "After the first gradient, t.grad is still None."
    if t.grad is not shared:
        yield "The first gradient was copied. It is enough to keep it, as long as nobody changes it."
    receive(t, second)
    if shared.tolist() != [1.0, 2.0]:
        yield (
            "The first gradient was changed, and it belongs to others too: in z = x + y the same array arrives at x "
            "and at y. Make a new one of the two."
        )
    if second.tolist() != [10.0, 20.0]:
        yield "The second gradient was changed, and it belongs to others too. Make a new one of the two."
    yield judged(
        t.grad,
        [11.0, 22.0],
        (second, "The second gradient took the place of the first. A value that is used twice gets the sum."),
        (shared, "The second gradient was dropped."),
        what="t.grad after [1, 2] and [10, 20]",
    )
    yield _third(receive, t, shared, second)


def _third(receive: Answer, t: Any, shared: Array, second: Array) -> Verdict:
    own = t.grad
    receive(t, np.array([100.0, 200.0]))
    if t.grad.tolist() != [111.0, 222.0]:
        return f"After [1, 2], [10, 20] and [100, 200], t.grad is {t.grad.tolist()}."
    if t.grad is not own:
        return "The third gradient made one more array, though t already owned one. Remember that in t.owned."
    t.grad = None
    receive(t, shared)
    receive(t, second)
    if shared.tolist() != [1.0, 2.0]:
        return "When grad was None again, t.owned was still True, so a gradient that others hold was changed."
    return None


def _rules(op: Answer, given: Names, *args: Array, rest: tuple[Any, ...] = ()) -> tuple[list[Any], Array]:
    """Return the results of an op's rules for a gradient, and that gradient."""
    tensors = [given["Tensor"](arg) for arg in args]
    y = op(*tensors, *rest)
    g = np.cos(np.arange(y.data.size)).reshape(y.data.shape) + 0.3
    rules = {id(argument): rule for argument, rule in y.made_from}
    return [rules[id(t)](g.copy()) if id(t) in rules else None for t in tensors], g


@STEPS("divide", section="Operations, number by number")
def _divide(divide: Answer, given: Names) -> Verdict:
    a, b = np.array([1.0, 2.0, -3.0]), np.array([2.0, -0.5, 4.0])
    (to_a, to_b), g = _rules(divide, given, a, b)
    return judged(
        to_a,
        g / b,
        (g / a, "What does a nudge of a do to a / b? It is divided by b."),
        (1 / b, "That is the slope alone. Multiply the gradient that comes in by it."),
        (g * b, "a / b grows by 1 / b for each unit of a."),
        what="the gradient of a in a / b",
    ) or judged(
        to_b,
        -g * a / b**2,
        (g * a / b**2, "The size is right, the sign is not: does a / b grow with b?"),
        (-g / b**2, "That is the slope of 1 / b. Where is a?"),
        (-g * a / b, "1 / b is b to the power -1: the exponent comes down, and then falls by one."),
        what="the gradient of b in a / b",
    )


@STEPS("sigmoid", section="Operations, number by number")
def _sigmoid(sigmoid: Answer, given: Names) -> Verdict:
    a = np.array([-2.0, 0.1, 1.5])
    (to_a,), g = _rules(sigmoid, given, a)
    y = 1 / (1 + np.exp(-a))
    return judged(
        to_a,
        g * y * (1 - y),
        (y * (1 - y), "That is the slope alone. Multiply the gradient that comes in by it."),
        (g * (1 - y * y), "That is the slope of tanh."),
        (g * a * (1 - a), "The slope is written with the result, y, not with the argument."),
        (g * (1 - y), "One factor is missing: the slope is largest where y is a half."),
        what="the gradient of a in sigmoid(a)",
    )


@STEPS("matmul", section="The product of matrices")
def _matmul(matmul: Answer, given: Names) -> Iterator[Verdict]:
    a, b = np.sin(np.arange(12.0)).reshape(4, 3), np.cos(np.arange(6.0)).reshape(3, 2)
    (to_a, to_b), g = _rules(matmul, given, a, b)
    order = "The factors are right, and stand in the wrong order: which product has the shape of the argument?"
    yield judged(to_a, g @ b.T, ((b @ g.T), order), what="the gradient of a in a @ b") or judged(
        to_b, a.T @ g, ((g.T @ a), order), what="the gradient of b in a @ b"
    )
    square = np.sin(np.arange(9.0)).reshape(3, 3)
    (to_a, to_b), g = _rules(matmul, given, square, square.T + 1.0)
    turned = "Right before by accident: of square matrices every product fits. Which one is transposed?"
    yield judged(
        to_a, g @ (square + 1.0), (g @ (square.T + 1.0), turned), what="the gradient of a, both square"
    ) or judged(to_b, square.T @ g, (square @ g, turned), what="the gradient of b, both square")
    stack, other = np.sin(np.arange(24.0)).reshape(2, 4, 3), np.cos(np.arange(12.0)).reshape(2, 3, 2)
    axes = ".T reverses all axes of a stack. Swap only the last two: np.swapaxes(x, -1, -2)."
    try:
        (to_a, to_b), g = _rules(matmul, given, stack, other)
    except ValueError:
        yield axes
    yield judged(to_a, g @ other.swapaxes(1, 2), what="the gradient of a stack of matrices") or judged(
        to_b, stack.swapaxes(1, 2) @ g, what="the gradient of a stack of matrices"
    )


@STEPS("total", section="Operations that move or gather numbers")
def _total(total: Answer, given: Names) -> Iterator[Verdict]:
    a = np.sin(np.arange(12.0)).reshape(4, 3)
    for axis in (0, 1):
        try:
            (to_a,), g = _rules(total, given, a, rest=(axis,))
        except ValueError:
            yield f"The shapes do not fit for a sum over axis {axis}: first put the axis back, with length 1."
        spread = np.expand_dims(g, axis)
        yield judged(
            to_a,
            np.broadcast_to(spread, a.shape),
            (g, "It has the shape of the result. Each number that was summed gets the gradient of its sum."),
            (spread + np.zeros((1, 1)), "The axis is there again, with length 1. Stretch it to the shape of a."),
            (np.broadcast_to(spread, a.shape) / a.shape[axis], "It is a sum, not a mean: nothing is divided."),
            (
                np.broadcast_to(spread, a.shape) * a,
                "The slope of a sum for each of its terms is 1, whatever the term is.",
            ),
            what=f"the gradient of a in its sum over axis {axis}",
        )
    square = np.sin(np.arange(9.0)).reshape(3, 3)
    (to_a,), g = _rules(total, given, square, rest=(1,))
    along_the_wrong = "It fits by accident: for a square matrix the gradient is stretched along the wrong axis."
    expected = np.broadcast_to(g[:, None], (3, 3))
    yield judged(to_a, expected, (expected.T, along_the_wrong), what="the gradient of a square matrix, axis 1")


@STEPS("pick", section="Operations that move or gather numbers")
def _pick(pick: Answer, given: Names) -> Verdict:
    a, rows = np.sin(np.arange(12.0)).reshape(4, 3), np.array([2, 0, 2, 2])
    (to_a,), g = _rules(pick, given, a, rest=(rows,))
    expected, last = np.zeros_like(a), np.zeros_like(a)
    np.add.at(expected, rows, g)
    last[rows] = g
    return judged(
        to_a,
        expected,
        (
            last,
            "Row 2 was picked three times and kept the last gradient only, as an assignment does; np.add.at adds.",
        ),
        (g, "It has the shape of what was picked. Put the gradients back to the rows that they came from."),
        (
            g[rows],
            "That picks from the gradient. Begin with zeros in the shape of a, and add each row of g where it is from.",
        ),
        what="the gradient of a in a[[2, 0, 2, 2]]",
    )


def _diamond(tensor: Answer, calls: list[Array]) -> tuple[Any, Any]:
    """Return x and 2 · 3x + 5 · 3x: 3x is reached by a short path and a long one, and the short one is listed first."""

    def made(scale: float, *args: Any) -> Any:
        def rule(g: Array) -> Array:
            calls.append(g)
            return scale * g

        return tensor(scale * sum(t.data for t in args), made_from=[(t, rule) for t in args])

    x = tensor([1.0, 2.0])
    shared = made(3.0, x)
    by_the_short_way = made(2.0, shared)
    return x, made(1.0, by_the_short_way, made(5.0, made(1.0, shared)))


def _add_up(t: Any, g: Array) -> None:
    t.grad = g if t.grad is None else t.grad + g


@STEPS("backward", section="Going backwards")
def _backward(backward: Answer, given: Names) -> Verdict:
    calls: list[Array] = []
    x, root = _diamond(given["Tensor"], calls)
    names = backward.__globals__
    before, names["receive"] = names["receive"], _add_up  # another step judges that function
    try:
        backward(root)
        hint = _of_the_diamond(x, len(calls))
        if hint:
            return hint
        t = given["Tensor"](1.0)
        for _ in range(3000):
            t = given["Tensor"](t.data, made_from=[(t, lambda g: g)])
        backward(t)
    except RecursionError:
        return "A chain of 3000 operations is too deep for recursion. Use a list of tensors that wait to be visited."
    finally:
        names["receive"] = before
    return None


def _of_the_diamond(x: Any, calls: int) -> Verdict:
    if x.grad is None:
        return "The first tensor of a chain got no gradient: does the walk go on to the arguments of arguments?"
    too_early = "One of two paths is missing: it went on before the second gradient had arrived."
    twice = "A gradient was sent on before it was complete, and a part went down twice. Wait until all have sent."
    hint = judged(
        x.grad,
        [21.0, 21.0],
        ([36.0, 36.0], twice),
        ([27.0, 27.0], twice),
        ([15.0, 15.0], too_early),
        ([6.0, 6.0], too_early),
        what="the gradient of x in 2 · 3x + 5 · 3x",
    )
    if hint or calls == 6:
        return hint
    return f"The result is right, but 6 rules were called {calls} times: each tensor sends once, when it is complete."
