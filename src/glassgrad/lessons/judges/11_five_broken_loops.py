"""Judge five corrected training loops by their results and by the order of their calls."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from glassgrad.engine.mode import no_grad
from glassgrad.lessons.exercise import Answer, Names, Steps, Verdict
from glassgrad.nn.functional import cross_entropy

STEPS = Steps()
_RATE = "It is better, but not as good as with the fault mended. Are the rate and the number of steps as they were?"
_FORGOTTEN = (
    "zero_grad comes between backward and step: it forgets the gradient before step can use it. Forget, compute, use."
)


def _calls(function: Answer, inside: bool = True) -> list[str]:
    """Return the names of the methods that the loop of a function calls, in order; or those before the loop."""
    body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    loops = [node for node in ast.walk(body) if isinstance(node, ast.For | ast.While)]
    start, end = (loops[0].lineno, loops[0].end_lineno or 0) if loops else (0, 0)
    found = [
        (node.lineno, node.col_offset, node.func.attr)
        for node in ast.walk(body)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (start <= node.lineno <= end if inside else node.lineno < start)
    ]
    return [name for _, _, name in sorted(found)]


def _order(function: Answer) -> Verdict:
    """Return a hint if the calls to clear, compute and use gradients are in the wrong order."""
    calls = [name for name in _calls(function) if name in {"zero_grad", "backward", "step"}]
    for name in ("backward", "step"):
        if name not in calls:
            return f"The loop does not call {name} any more."
    if "zero_grad" not in calls:
        if "zero_grad" in _calls(function, inside=False):
            return "zero_grad is called once, before the loop. Every step needs it."
        return "backward adds to .grad. What becomes of the gradients of all the steps before?"
    turned = calls[calls.index("backward") :] + calls[: calls.index("backward")]  # a loop has no beginning
    if turned[:3] == ["backward", "zero_grad", "step"]:
        return _FORGOTTEN
    if calls.index("step") < calls.index("backward") and calls.index("zero_grad") < calls.index("step"):
        return "step comes right after zero_grad; what backward finds then is gone in the next round."
    return None


def _error(model: Answer, given: Names) -> float:
    with no_grad():
        return float(((model(given["X"]).reshape(-1) - given["NUMBERS"]) ** 2).mean())


def _entropy(model: Answer, given: Names) -> float:
    with no_grad():
        return float(cross_entropy(model(given["X"]), given["LABELS"]))


def _trained(loop: Answer, name: str) -> tuple[Any, Verdict]:
    model = loop()
    if not callable(model):
        return None, f"{name} returns {type(model).__name__}; it has to return its model."
    return model, None


@STEPS("loop 1", section="1. The loss goes down, then up, then anywhere")
def _loop_1(loop_1: Answer, given: Names) -> Verdict:
    model, fault = _trained(loop_1, "loop_1")
    if fault is not None or _error(model, given) < 1e-4:
        return fault
    return _order(loop_1) or _RATE


@STEPS("loop 2", section="2. It learns, but slowly, and never becomes sure")
def _loop_2(loop_2: Answer, given: Names) -> Verdict:
    model, fault = _trained(loop_2, "loop_2")
    if fault is not None or _entropy(model, given) < 0.125:
        return fault
    calls = _calls(loop_2)
    if "softmax" in calls or "sigmoid" in calls:
        return (
            "cross_entropy takes scores, any numbers, and applies log-softmax itself. What does it make of numbers "
            "from 0 to 1?"
        )
    if {"argmax", "max"} & set(calls):
        return "Choosing a class has no slope: no gradient gets through. cross_entropy takes the scores."
    return _order(loop_2) or _RATE


@STEPS("loop 3", section="3. The regression that finds the mean and nothing else")
def _loop_3(loop_3: Answer, given: Names) -> Verdict:
    model, fault = _trained(loop_3, "loop_3")
    if fault is not None or _error(model, given) < 1e-4:
        return fault
    with no_grad():
        spread = float(model(given["X"]).std())
    if spread < 0.2:
        return (
            "It still predicts one number for all. What are the shapes of model(X) and NUMBERS, and what is the shape "
            "of their difference?"
        )
    return _order(loop_3) or _RATE


@STEPS("loop 4", section="4. It trains on yesterday's gradient")
def _loop_4(loop_4: Answer, given: Names) -> Iterator[Verdict]:
    model, fault = _trained(loop_4, "loop_4")
    yield fault
    yield _order(loop_4)
    fallen = _entropy(given["classifier"](), given) - _entropy(model, given)
    yield None if fallen > 0.1 else _RATE


@STEPS("loop 5", section="5. The weights that the optimizer does not know")
def _loop_5(loop_5: Answer, given: Names) -> Verdict:
    weight = loop_5()
    if getattr(weight, "shape", None) != (2,):
        return "loop_5 has to return the weight, a tensor of shape (2,)."
    with no_grad():
        error = float(((given["X"] @ weight.detach() - given["NUMBERS"]) ** 2).mean())
    if error < 1e-4:
        return None
    if weight.detach().tolist() == [0.5, 0.5]:
        return "The weight that is returned has never moved. Is it the tensor that the optimizer was given?"
    if weight.detach().tolist() == [0.0, 0.0]:
        return "The weight that is returned is the first one, and has not moved. Which tensor does the loss use?"
    return _order(loop_5) or _RATE
