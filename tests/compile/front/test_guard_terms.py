"""Single guards: each kind of place, when its values count as equal, and the stated reason if they do not."""

from __future__ import annotations

import contextvars
import enum
import math
import types
from collections import deque
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.compile.front.calls.guards import Guards, hooks_of
from glassgrad.compile.front.state.edges import LONG, Edge, is_constant, same

CONTEXT: contextvars.ContextVar[Any] = contextvars.ContextVar("rate")


class Holder:
    rate = 3


class Colour(enum.Enum):
    RED = 1


def cell_with(value: Any) -> Any:
    return (lambda: value).__closure__[0]


def emptied(cell: Any) -> None:
    del cell.cell_contents


def refilled(cell: Any, value: Any) -> None:
    cell.cell_contents = value


def made_absent(holder: dict[str, Any]) -> None:
    holder["extra"] = 1


def table() -> dict[str, tuple[Edge, Any, str]]:
    """Return, by name, an edge that holds, a function that changes the place, and what is said then."""
    one, two = object(), object()
    scaled, other = gg.ones(2), gg.ones(2, 3)
    array = np.arange(3.0)
    CONTEXT.set(1)
    cell, item, attribute, long = cell_with(3), {"rate": one, (1,): one}, Holder(), list(range(100))
    keys: dict[str, int] = {"a": 1, "b": 2}
    empty_cell, tensor_item, none_item, truth, text = cell_with(3), [scaled], [None], [True], {"name": "x" * 60}
    return {
        "a cell": (Edge("rate", "cell", cell, None, 3), lambda: refilled(cell, 4), "rate was 3, now 4"),
        "an emptied cell": (
            Edge("rate", "cell", empty_cell, None, 3), lambda: emptied(empty_cell), "rate was 3, now missing"),
        "an object": (
            Edge("t", "item", item, "rate", one), lambda: item.update(rate=two), "t was a object, now another object"),
        "a key that is no text": (
            Edge("t", "item", item, (1,), one), lambda: item.update({(1,): None}), "t was a object, now None"),
        "an item that goes": (Edge("a", "item", keys, "a", 1), lambda: keys.pop("a"), "a was 1, now missing"),
        "an attribute": (
            Edge("h.rate", "attribute", attribute, "rate", 3), lambda: setattr(attribute, "rate", 3.0),
            "h.rate was 3, now 3.0"),
        "a context": (Edge("rate", "context", CONTEXT, None, 1), lambda: CONTEXT.set(None), "rate was 1, now None"),
        "a length": (Edge("x", "length", long, None, 100), lambda: long.append(1), "x was 100, now 101"),
        "contents": (
            Edge("x", "content", long, None, list(range(100))), lambda: long.__setitem__(5, 0),
            "the contents of x have changed"),
        "numbers": (
            Edge("x", "bytes", array, None, array.tobytes()), lambda: array.__setitem__(1, 5),
            "the contents of x have changed"),
        "keys": (
            Edge("x", "keys", keys, None, ("a", "b")), lambda: keys.update(c=1),
            "x were ['a', 'b'], now ['a', 'b', 'c']"),
        "nothing": (Edge("x", "absent", keys, "extra", None), lambda: made_absent(keys), "x was missing, now 1"),
        "a tensor": (
            Edge("w", "item", tensor_item, 0, scaled), lambda: tensor_item.__setitem__(0, other),
            "w was a tensor of shape (2,), now a tensor of shape (2, 3)"),
        "a tensor of one shape": (
            Edge("w", "item", tensor_item, 0, scaled), lambda: tensor_item.__setitem__(0, gg.ones(2)),
            "w was a tensor of shape (2,), now another tensor of shape (2,)"),
        "None": (Edge("x", "item", none_item, 0, None), lambda: none_item.__setitem__(0, 0), "x was None, now 0"),
        "truth": (Edge("x", "item", truth, 0, True), lambda: truth.__setitem__(0, 1), "x was True, now 1"),
        "long text": (
            Edge("x", "item", text, "name", "x" * 60), lambda: text.update(name="y" * 57),
            f"x was a str, now '{'y' * 57}'"),
        "longer text": (
            Edge("x", "item", text, "name", "x" * 60), lambda: text.update(name="y" * 58),
            "x was a str, now another str"),
    }  # fmt: skip  # a table


@pytest.mark.parametrize("name", table())
def test_a_place_that_holds_what_it_held(name: str) -> None:
    edge, change, said = table()[name]
    guards = Guards([edge], [], [])
    check = guards.compiled()
    assert check() is True
    assert edge.holds()
    assert guards.why() is None
    change()
    assert check() is False
    assert guards.why() == said


def test_no_condition_always_holds() -> None:
    assert Guards([], [], []).compiled()() is True


def test_several_places_of_several_holders() -> None:
    first, second = {"a": 1, "b": 2.5}, [1, "x"]
    edges = [Edge("a", "item", first, "a", 1), Edge("b", "item", first, "b", 2.5), Edge("c", "item", second, 1, "x")]
    guards = Guards(edges, [], [])
    check = guards.compiled()
    for holder, key, value, path in ((first, "a", 0, "a"), (first, "b", 0, "b"), (second, 1, "y", "c")):
        before = holder[key]
        assert check()
        holder[key] = value
        assert not check()
        assert (guards.why() or "").startswith(f"{path} was")
        holder[key] = before


def test_which_attribute_is_new_says_more_than_how_many_there_are() -> None:
    holder = types.SimpleNamespace(rate=1)
    edges = [Edge("len(vars(h))", "length", vars(holder), None, 1), Edge("h.rate", "attribute", holder, "rate", 1)]
    guards = Guards(edges, [], [])
    holder.rate, holder.more = 2, 3
    assert guards.why() == "h.rate was 1, now 2"
    holder.rate = 1
    assert guards.why() == "len(vars(h)) was 1, now 2"


# --- tensors --------------------------------------------------------------------------------------------------------


def leaf(*hooks: Any) -> gg.Tensor:
    made = gg.ones(2, requires_grad=True)
    for hook in hooks:
        made.register_hook(hook)
    return made


def first(g: Any) -> None:
    """Do nothing, as a hook."""


def second(g: Any) -> None:
    """Do nothing, as another hook."""


def test_whether_a_gradient_is_required() -> None:
    tensor = leaf()
    guards = Guards([], [(tensor, "w", True, ())], [])
    check = guards.compiled()
    assert check()
    assert guards.why() is None
    tensor.requires_grad_(False)
    assert not check()
    assert guards.why() == "w.requires_grad was True, now False"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((), (first,), "w had 0 hooks, now 1"),
        ((first,), (), "w had 1 hooks, now 0"),
        ((first,), (second,), "w had 1 hooks, now others"),
        ((first,), (first, second), "w had 1 hooks, now 2"),
    ],
)
def test_which_hooks_there_are(before: Any, after: Any, said: str) -> None:
    held = leaf(*before)
    guards = Guards([], [(held, "w", True, hooks_of(held))], [])
    check = guards.compiled()
    assert check()
    assert guards.why() is None
    assert (held._extra is None) == (not before)
    if held._extra is not None:
        held._extra.pop("hooks", None)
    for hook in after:
        held.register_hook(hook)
    assert not check()
    assert guards.why() == said


def test_extras_that_are_no_hooks_do_not_matter() -> None:
    """A tensor that lost its last hook, or has a name, is as one that never had any."""
    tensor = leaf()
    guards = Guards([], [(tensor, "w", True, ())], [])
    check = guards.compiled()
    tensor.register_hook(first).remove()
    assert tensor._extra is not None
    assert check()
    assert guards.why() is None


def test_hooks_of_a_result_are_none_of_a_leafs() -> None:
    result = leaf() * 2
    result.register_hook(first)
    assert hooks_of(result) == ()
    assert len(hooks_of(leaf(first))) == 1


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, gg.ones(2), "was None, now a tensor"),
        (gg.ones(2), None, "was a tensor, now None"),
        (gg.ones(2), gg.ones(2), "was a tensor, now another tensor"),
    ],
)
def test_which_gradient_a_leaf_has(before: Any, after: Any, said: str, named: bool) -> None:
    tensor, other = leaf(), leaf()
    tensor.grad = before
    tracks = [(other, "v", True, ()), *([(tensor, "w", True, ())] if named else [])]
    guards = Guards([], tracks, [(other, None), (tensor, before)])
    check = guards.compiled()
    assert check()
    assert guards.why() is None
    tensor.grad = after
    assert not check()
    assert guards.why() == f"{'w' if named else 'a tensor'}.grad {said}"


# --- the same -------------------------------------------------------------------------------------------------------

NAN = float("nan")
CONSTANTS = [
    True, 1, 1.0, 1j, "1", b"1", None, ..., np.float32(1), np.dtype("f4"), Colour.RED, slice(1), range(3),
    (1, (2, "x")), frozenset({1}), frozenset({True}), slice(True), (0,) * LONG,
]  # fmt: skip  # a table


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_a_constant_is_the_same_as_its_like_only(value: Any) -> None:
    assert is_constant(value)
    for other in CONSTANTS:
        assert same(other, value) == (other is value)


CONTAINERS = {
    "list": lambda value: [value] * 100,
    "deque": lambda value: deque([value] * 100),
    "dict": lambda value: {f"k{at}": value for at in range(100)},
    "keys": lambda value: {value: "same", **{f"k{at}": "same" for at in range(99)}},
    "set": lambda value: {value, "else"},
    "frozenset": lambda value: [frozenset({value, "else"})] * 100,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_a_container_as_a_whole_tells_equal_constants_apart(make: Any) -> None:
    values = [1, 1.0, True, np.float32(1), (1,), (1.0,), 0.0, -0.0]
    for before in values:
        held = make(before)
        edge = Edge("x", "content", held, None, held.copy())
        check = Guards([edge], [], []).compiled()
        for now in values:
            changed = make(now)
            held.clear()
            (held.update if isinstance(held, dict | set) else held.extend)(changed)
            assert check() is edge.holds() is (now is before), (before, now)


def test_a_long_tuple_is_no_obstacle() -> None:
    many = (*range(100), 2.0)
    step = gg.compile(lambda x: x * many[-1] + len(many), backend="numpy", strict=True)
    assert step(gg.ones(1)).tolist() == [103.0]


def test_what_is_equal_and_apart_is_the_same() -> None:
    for make in (lambda: 10**30, lambda: (10**30, "a" * 50), lambda: float("1e300"), lambda: np.float64(2.5)):
        first_value, second_value = make(), make()
        assert same(first_value, second_value)
    for text in ("nan", "0", "-0", "-inf"):
        for kind in (float, complex, np.float32, np.float64, np.complex64):
            assert same(kind(text), kind(text)), (kind, text)
    for kind in (float, complex, np.float32):
        assert not same(kind("-0"), kind("0")), kind
    assert same((), ())
    assert same(np.dtype("f4"), np.dtype("<f4"))
    assert not same(np.dtype("f4"), np.dtype("f8"))
    assert same((1, float("nan")), (1, NAN))
    assert not same(math.inf, NAN)
    assert not same(NAN, 1.0)
    assert not same((1, 2), (1, 3))
    assert not same((1, 2), (1, 2, 3))
    assert not same((1, 1.0), (1, 1))
    assert not same([1], [1]), "a list is itself only"


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, object(), (1, [2]), (0,) * (LONG + 1), np.ones(1)], ids=type)
def test_what_is_no_constant(value: Any) -> None:
    assert not is_constant(value)
    assert same(value, value)


def test_zeros_of_both_signs_are_two_programs() -> None:
    rate = [0.0]
    step = gg.compile(lambda x: x / rate[0], backend="numpy")
    with np.errstate(divide="ignore"):
        assert step(gg.ones(1)).tolist() == [math.inf]
        rate[0] = -0.0
        assert step(gg.ones(1)).tolist() == [-math.inf]
