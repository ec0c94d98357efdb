"""State that a step changes: kinds of places and mutations, eagerly and compiled, over several calls."""

from __future__ import annotations

import types
import warnings
from collections import defaultdict, deque
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import nn
from tests.compile.front.state_kinds import KINDS, MUTATIONS, program

CALLS = 7
# What is changed at every call in another way is traced at every call.
EVERY_TIME = {"count and look", "decay", "text", "grow", "append and look", "set of numbers", "take away"}
# A parameter has another name than the list that is its default.
EVERY_TIME_HERE = {"list as default": {"count", "count elements", "append", "append numbers"}}
# These are what programs do most, so they are tried with every kind of place; the others with some kinds.
EVERYWHERE = {
    "count", "count and look", "switch", "initialise from data", "store a result", "store detached", "running mean",
    "append",
}  # fmt: skip  # a table
KINDS_OF_REST = {"attribute", "attribute of a module", "global", "nonlocal", "entry", "element of a deque"}
CASES = [
    (kind, mutation) for kind in KINDS for mutation in MUTATIONS if mutation in EVERYWHERE or kind in KINDS_OF_REST
]


def plain(value: Any) -> Any:
    """Return a value with numbers in the place of tensors."""
    if isinstance(value, gg.Tensor):
        return type(value).__name__, value.tolist(), value.requires_grad
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | deque):
        return type(value).__name__, [plain(part) for part in value]
    return value


def observed(kind: str, mutation: str, *, compiled: bool = False, verify: bool = False) -> tuple[list[Any], Any]:
    space = {
        "gg": gg, "nn": nn, "types": types, "deque": deque, "defaultdict": defaultdict, "w": gg.tensor([1.0, 2.0, 3.0]),
        "__name__": "state_of_a_user",
    }  # fmt: skip  # a table
    step, look, outside = program(KINDS[kind], MUTATIONS[mutation], space)
    run = gg.compile(step, backend="numpy", verify=verify) if compiled or verify else step
    seen = []
    for call in range(CALLS):
        if call == CALLS - 2:
            outside()
        x = gg.tensor([1.0, 2.0, 3.0 + call])
        result = run(x)
        held = look()
        seen.append((plain(result), plain(held), held is result, held is x))
    return seen, run


@pytest.mark.parametrize(("kind", "mutation"), CASES)
def test_state_that_a_step_changes(kind: str, mutation: str) -> None:
    wanted, _ = observed(kind, mutation, compiled=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, run = observed(kind, mutation, compiled=True)
    assert found == wanted
    assert mutation in EVERY_TIME | EVERY_TIME_HERE.get(kind, set()) or run.traces <= 4


@pytest.mark.parametrize("mutation", ["count", "switch", "initialise from data", "running mean", "append"])
@pytest.mark.parametrize("kind", ["attribute", "nonlocal", "entry"])
def test_a_verified_first_call_changes_state_once(kind: str, mutation: str) -> None:
    assert observed(kind, mutation, verify=True)[0] == observed(kind, mutation)[0]
