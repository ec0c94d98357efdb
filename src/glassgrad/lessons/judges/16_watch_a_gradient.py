"""Judge hooks, jumps, clipping and steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import glassgrad as gg
from glassgrad import nn
from glassgrad.lessons.exercise import OPEN, Answer, Steps, Verdict
from glassgrad.lessons.hints import judged

STEPS = Steps()
Array = np.ndarray

_X, _TARGET = gg.tensor(np.sin(np.arange(12.0)).reshape(4, 3)), gg.tensor(np.cos(np.arange(4.0)).reshape(4, 1))


def _model() -> Any:
    gg.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()


def _arrivals(model: Any) -> list[tuple[str, float]]:
    """The norms at the outputs, without hooks: outputs keep their gradients."""
    x, outputs = _X, []
    for module in model:
        x = module(x)
        x.retain_grad()
        outputs.append(x)
    nn.functional.mse_loss(x, _TARGET).backward()
    return [(str(i), float(outputs[i].grad.norm())) for i in (2, 1, 0)]


@STEPS("listen", section="Listening at every layer")
def _listen(listen: Answer) -> Iterator[Verdict]:
    model, expected = _model(), _arrivals(_model())
    found = list(listen(model, _X, _TARGET))
    if not found:
        yield "Nothing was heard. Were the hooks there before the forward pass, and was there a backward pass?"
    names = [str(name) for name, _ in found]
    if names == [name for name, _ in expected][::-1]:
        yield "That is the order of the forward pass. Note each one when its hook runs: the last layer comes first."
    if names != [name for name, _ in expected]:
        yield f"Heard from {', '.join(names)}; expected 2, 1, 0: each part of the model once, and not the model itself."
    norms = [float(norm) for _, norm in found]
    yield judged(
        norms,
        [norm for _, norm in expected],
        (
            [*(norm for _, norm in expected[1:]), 0.0],
            "That is what each module sends on. Return the other one, which arrives.",
        ),
        ([norm**2 for _, norm in expected], "That is the square of the norm."),
        what="the list of norms",
    )
    before = list(found)
    nn.functional.mse_loss(model(_X), _TARGET).backward()
    if len(found) != len(before) or any(hooks for hooks in map(_backward_hooks, model.modules())):
        yield "The hooks are still there. Each registration returns a handle: handle.remove()."


def _backward_hooks(module: Any) -> Any:
    hooks = getattr(module, "_hooks", None)
    return hooks is not None and hooks.backward


@STEPS("halve", section="Changing it on its way")
def _halve(halve: Answer) -> Verdict:
    plain, model = _model(), _model()
    nn.functional.mse_loss(plain(_X), _TARGET).backward()
    hidden = model[1](model[0](_X))
    before = hidden.detach().numpy().copy()
    halve(hidden)
    if not np.array_equal(hidden.detach().numpy(), before):
        return "The value itself was changed. Halve only the gradient that comes back."
    nn.functional.mse_loss(model[2](hidden), _TARGET).backward()
    below, above = model[0].weight.grad, model[2].weight.grad
    if below is None:
        return "Nothing arrives below any more."
    share = float(below.norm() / plain[0].weight.grad.norm())
    if abs(float(above.norm() / plain[2].weight.grad.norm()) - 1) > 1e-6:
        return "The gradient above it has changed as well. Where does the hook sit?"
    known = {
        1.0: "Nothing has changed below: a hook replaces the gradient by the value it returns. Does yours return one?",
        0.0: "Nothing comes through at all. A half should.",
        2.0: "It was doubled.",
        0.25: "It was halved twice: was the hook registered twice, or the gradient changed in place as well?",
    }
    if abs(share - 0.5) < 1e-6:
        return None
    return known.get(round(share, 6), f"{share:.3g} of the gradient arrives below, expected a half.")


@STEPS("first jump", section="A whole run")
def _jump(first_jump: Answer) -> Verdict:
    norms = [1.0, 30.0, 2.0, 1.5, 1.0, 1.2, 1.1, 25.0, 400.0, 1.0]
    for numbers, expected, hints in (
        (
            norms,
            7,
            {
                8: "There is a jump before, at step 7. A mean is raised by one large number; take the median.",
                1: "Steps 0 to 4 are too early to tell.",
                None: "There is a jump at step 7. Compare with the median of the steps before, not of all steps, and "
                "not with their mean, which one large number raises.",
            },
        ),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 1.0], None, {5: "9 is less than ten times the median, 1."}),
        ([0.001, 0.002, 0.001, 0.001, 0.002, 0.05, 0.001], 5, {None: "Small numbers can jump too: 0.05 after 0.001."}),
        ([1.0] * 8, None, {}),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 11.0], 5, {None: "The last step counts too, and step 5 may be the first to tell."}),
    ):
        found = first_jump(list(numbers))
        if found is ...:
            return OPEN
        if found != expected or isinstance(found, bool):
            return hints.get(found, f"first_jump({numbers}) is {found!r}, expected {expected!r}.")
        if isinstance(first_jump(np.array(numbers)), list | tuple | np.ndarray):
            return "Return one number, the step, or None."
    return None


@STEPS("clip", section="Clipping")
def _clip(clip: Answer) -> Iterator[Verdict]:
    gradients = [np.array([1.0, 2.0]), np.array([[2.0], [4.0]])]
    kept = [g.copy() for g in gradients]

    def flat(arrays: Any) -> Array:
        return np.concatenate([np.ravel(a) for a in arrays])

    found = clip(gradients, 2.0)
    if found is None or found is ...:
        yield judged(found, 0.0, what="clip(gradients, 2.0)")
    found = list(found)
    if len(found) != 2:
        yield "Return a list with one array for each that was given."
    if not all(np.array_equal(a, b) for a, b in zip(gradients, kept, strict=True)):
        yield "The arrays that were given have changed: g *= ... works in place. Write g * ..."
    whole = flat(kept)
    yield judged(
        flat(found),
        whole * 2 / 5,
        (
            whole * np.array([5, 5, 20, 20]) ** -0.5 * 2,
            "Each array was clipped by itself. The norm is that of all together, so that they keep their proportions.",
        ),
        (np.clip(whole, -2, 2), "Each entry was cut, which turns the gradient. Scale all of them by one number."),
        (
            whole * 2 / (5**0.5 + 20**0.5),
            "The norms of the arrays were added. The norm of all is the root of the sum of all squares.",
        ),
        (whole * 2 / 25, "The norm is the root of the sum of the squares."),
        (whole, "It is longer than the limit, and was left as it is. Which way round is the comparison?"),
        (whole / 5, "Their norm is 1 now. It may be as large as the limit."),
        (whole * 5 / 2, "The quotient is upside down: it became longer."),
        what="the clipped gradient",
    )
    yield judged(
        flat(clip([g.copy() for g in kept], 10.0)),
        whole,
        (whole * 2, "A gradient that is shorter than the limit was made longer. It stays as it is."),
        what="a gradient that is short enough",
    )


@STEPS("train step", section="Clipping", gaps=["train_step"])
def _train_step(train_step: Answer) -> Verdict:
    order: list[str] = []
    model = _model()
    target = _TARGET * 100.0
    optimizer = _Noting(model.parameters(), order)
    for p in model.parameters():
        p.grad = gg.ones(*p.shape, dtype=gg.float64)  # from a previous step
        p.register_hook(lambda g: order.append("backward"))
    start = [p.detach().numpy().copy() for p in model.parameters()]
    loss = train_step(model, optimizer, _X, target)
    order = list(dict.fromkeys(order))
    if "backward" not in order:
        return "There was no backward pass."
    if "step" not in order:
        return "The optimizer made no step."
    if order.index("step") < order.index("backward"):
        return "The optimizer stepped before there was a gradient."
    if "zero_grad" not in order:
        return "The gradients of the step before are still in it: zero_grad() before backward()."
    if order.index("backward") < order.index("zero_grad") < order.index("step"):
        return "zero_grad() comes between backward() and step(): the gradients were thrown away."
    moved = (
        sum(float(((p.detach().numpy() - a) ** 2).sum()) for p, a in zip(model.parameters(), start, strict=True)) ** 0.5
    )
    fresh = _model()
    nn.functional.mse_loss(fresh(_X), target).backward()
    norm = sum(float((p.grad**2).sum()) for p in fresh.parameters()) ** 0.5
    if abs(moved - norm) < 1e-6 * norm:
        return "The step used the gradient as it is. Clip after backward(), which makes it, and before step()."
    if abs(moved - 1.0) > 1e-6:
        return f"The step had a length of {moved:.4g}; with a rate of 1 and clipped to norm 1 it has 1."
    return judged(loss, nn.functional.mse_loss(_model()(_X), target).item(), what="the loss")


class _Noting:
    """An optimizer of plain SGD at rate 1 that notes when it is called."""

    def __init__(self, parameters: Iterator[Any], order: list[str]) -> None:
        self.parameters, self.order = list(parameters), order

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.order.append("zero_grad")
        for p in self.parameters:
            p.grad = None

    def step(self) -> None:
        self.order.append("step")
        with gg.no_grad():
            for p in self.parameters:
                if p.grad is not None:
                    p.sub_(p.grad)


def _walk(rule: Answer, gradients: list[Array], **options: float) -> Any:
    """Return the weights after some steps of the learner's rule, or its result if that is not weights."""
    p, state = np.array([1.0, -2.0]), dict[str, Any]()
    for g in gradients:
        kept = p.copy()
        new = rule(p, g.copy(), state, **options)
        if new is None or new is ...:
            return new
        if not np.array_equal(p, kept):
            return "in place"
        p = np.asarray(new)
    return p


_GRADIENTS = [np.array([1.0, -0.5]), np.array([0.5, 2.0]), np.array([-3.0, 0.1])]
_IN_PLACE = "The weights that were given have changed: p -= ... works in place. Return a new array."


def _momentum(first: Callable[..., Array], sign: float = -1.0) -> Array:
    p, v = np.array([1.0, -2.0]), np.zeros(2)
    for g in _GRADIENTS:
        v = first(v, g)
        p = p + sign * 0.1 * v
    return p


@STEPS("momentum", section="From a gradient to a step")
def _momentum_step(momentum: Answer) -> Verdict:
    found = _walk(momentum, _GRADIENTS)
    if isinstance(found, str):
        return _IN_PLACE
    return judged(
        found,
        _momentum(lambda v, g: 0.9 * v + g),
        (
            _momentum(lambda v, g: 0.9 * v + 0.1 * g),
            "That is a running mean, as in Adam. Here v is a sum: g has the factor 1.",
        ),
        (_momentum(lambda v, g: g), "That is plain SGD: v has to be kept in `state` from one call to the next."),
        (_momentum(lambda v, g: v + g), "Nothing is forgotten: v is multiplied by beta in each step."),
        (_momentum(lambda v, g: 0.9 * v + g, 1.0), "It goes up the slope."),
        (_momentum(lambda v, g: 0.9 * (v + g)), "The new gradient is weakened as well. Only the old ones are."),
        (_momentum(lambda v, g: 0.9 * v - g), "It goes up the slope: there is a minus too many."),
        what="the array of weights after three steps",
        tolerance=1e-9,
    )


def _adam(correct: bool = True, root: bool = True, square: bool = True, sign: float = -1.0, t0: int = 0) -> Array:
    p, m, s = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for t, g in enumerate(_GRADIENTS, 1 + t0):
        m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * (g * g if square else g)
        with np.errstate(all="ignore"):
            up, down = (m / (1 - 0.9**t), s / (1 - 0.999**t)) if correct else (m, s)
            p = p + sign * 0.1 * up / ((np.sqrt(down) if root else down) + 1e-8)
    return p


@STEPS("adam", section="From a gradient to a step")
def _adam_step(adam: Answer) -> Verdict:
    found = _walk(adam, _GRADIENTS)
    if isinstance(found, str):
        return _IN_PLACE
    return judged(
        found,
        _adam(),
        (
            _adam(correct=False),
            "Both means begin at 0 and are too small at first. Divide them by 1 - b^t, with t = 1 in the first step.",
        ),
        (_adam(root=False), "s is a mean of squares: its root has the size of a gradient."),
        (_adam(square=False), "s is the mean of g², not of g."),
        (_adam(sign=1.0), "It goes up the slope."),
        (_adam(t0=1), "The first step is t = 1."),
        what="the array of weights after three steps",
        tolerance=1e-7,
    )
