"""Dtypes of results under the name torch, compared with PyTorch over kinds and dtypes of operands."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import compat
from glassgrad.compat.promotion import BESIDE, LIMITS, WIDENED
from glassgrad.ops.core import REGISTRY
from tests.compat import promotion_calls
from tests.compat.promotion_calls import BINARY, DIFFERENT, MADE, OPERANDS, TENSORS, UNARY, cases, dtype_of, result

torch = pytest.importorskip("torch", reason="PyTorch's dtypes are what ours are held against")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with promotion_calls.quiet():
        yield


def both(call: str, a: Any = None, b: Any = None) -> tuple[Any, Any]:
    """The result here, under the name torch, and in PyTorch."""
    expected = result(torch, call, a, b)
    with compat.as_torch():
        return result(gg, call, a, b), expected


def wrong(call: str, a: Any, b: Any, found: Any, expected: Any) -> str:
    """What differs, as a text; empty if nothing does."""
    ours, theirs = dtype_of(found), dtype_of(expected)
    if theirs in {ours, "complex32"} or call in DIFFERENT:
        return ""
    return f"{call} of {a} and {b}: {theirs} in PyTorch, {ours} here {found if ours == 'refused' else ''}"


def same_numbers(call: str, found: Any, expected: Any) -> None:
    """Compare the values of results that have the same dtype."""
    if dtype_of(found) == dtype_of(expected) and hasattr(expected, "tolist"):
        ours, theirs = np.asarray(found.tolist(), complex), np.asarray(expected.tolist(), complex)
        coarse = dtype_of(expected) in {"float16", "bfloat16"}
        np.testing.assert_allclose(ours, theirs, rtol=2e-2 if coarse else 2e-6, err_msg=call)


@pytest.mark.parametrize("call", BINARY)
def test_two_operands(call: str) -> None:
    """What PyTorch refuses is left out: more is accepted here."""
    expected = {pair: result(torch, call, *pair) for pair in cases(call)}
    expected = {pair: y for pair, y in expected.items() if not isinstance(y, Exception)}
    assert expected
    with compat.as_torch():
        found = {pair: result(gg, call, *pair) for pair in expected}
    assert not [text for pair, y in found.items() if (text := wrong(call, *pair, y, expected[pair]))]
    for pair, y in found.items():
        same_numbers(f"{call} of {pair}", y, expected[pair])


@pytest.mark.parametrize("call", UNARY)
def test_one_operand(call: str) -> None:
    for a in TENSORS:
        found, expected = both(call, a)
        if not isinstance(expected, Exception):
            assert not wrong(call, a, None, found, expected)
            same_numbers(f"{call} of {a}", found, expected)


@pytest.mark.parametrize("call", MADE)
def test_new_tensors(call: str) -> None:
    found, expected = both(call)
    assert dtype_of(found) == dtype_of(expected) != "refused", found


def test_differences_are_differences() -> None:
    """Each entry of `DIFFERENT` has a case that differs still."""
    left = set(DIFFERENT) - {"complex32"}
    for call in sorted(left, key=lambda call: call in BINARY):
        pairs = cases(call) if call in BINARY else ((a, None) for a in TENSORS)
        for a, b in pairs:
            found, expected = map(dtype_of, both(call, a, b))
            if found != expected not in {"refused", "complex32"}:
                left.remove(call)
                break
    assert not left


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "a", "b"),
    [
        ("a.mean()", "int64", None),
        ("a.mean(0)", "bool", None),
        ("a.var()", "int32", None),
        ("a.std()", "uint8", None),
        ("a.norm()", "int64", None),
        ("torch.mean(a)", "int64", None),
        ("torch.std_mean(a)", "int64", None),
        ("a += b", "int64", "float32"),
        ("a /= b", "int64", "int64"),
        ("a *= b", "float32", "complex64"),
        ("a += b", "bool", "int64"),
        ("a.sqrt_()", "int64", None),
        ("a.add_(1.5)", "int32", None),
    ],
)
def test_refusals(call: str, a: str, b: str | None) -> None:
    found, expected = both(call, ("tensor", a), ("tensor", b) if b else None)
    assert isinstance(expected, RuntimeError)
    assert isinstance(found, RuntimeError)
    assert "dtype" in str(found)


def test_refusals_end_with_the_name() -> None:
    with compat.as_torch():
        pass
    assert gg.arange(4).mean().dtype == gg.float64
    assert (gg.arange(4) / 2).dtype == gg.float64
    assert gg.mean(gg.arange(4)).item() == 1.5


# --- in transformations, and gradients ------------------------------------------------------------

_TRACED = [call for call in BINARY if not call.startswith(("a.", "a[", "torch.result_type")) and "= b" not in call]
_TRACED_DTYPES = ("bool", "int64", "float16", "float32")


@pytest.mark.parametrize("dtype", _TRACED_DTYPES)
@pytest.mark.parametrize("kind", ["tensor", "0-d"])
def test_compiled_functions_give_the_dtypes_of_eager_ones(kind: str, dtype: str) -> None:
    with compat.as_torch():
        for b in OPERANDS:
            if b[0] != "number" and b[1] not in _TRACED_DTYPES:
                continue
            eager = {call: result(gg, call, (kind, dtype), b) for call in _TRACED}
            calls = [call for call, y in eager.items() if not isinstance(y, Exception)]
            function = called(f"lambda a, b: ({', '.join(calls)},)", gg, m=gg.tensor([True, False]))
            args = [promotion_calls.operand(gg, (kind, dtype)), promotion_calls.operand(gg, b, (2, 1))]
            found = gg.compile(function, backend="numpy")(*args)
            assert {call: dtype_of(y) for call, y in zip(calls, found, strict=True)} == {
                call: dtype_of(eager[call]) for call in calls
            }, b


def called(text: str, library: Any, **names: Any) -> Any:
    """The value of an expression."""
    return FunctionType(compile(text, "<call>", "eval"), {"torch": library, "__builtins__": builtins, **names})()


def test_native_code_and_vmap_give_the_dtypes_of_eager_mode() -> None:
    def step(x: Any, n: Any) -> Any:
        return (x * n, n / 2, n * 0.5, (n > 1).sum() / 3)

    with compat.as_torch():
        x, n = gg.ones(3), gg.arange(3)
        expected = ["float32"] * 4
        assert [dtype_of(y) for y in step(x, n)] == expected
        assert [dtype_of(y) for y in gg.compile(step)(x, n)] == expected
        assert [dtype_of(y) for y in gg.func.vmap(step)(gg.ones(2, 3), gg.ones(2, 3, dtype=gg.int64))] == expected


@pytest.mark.parametrize("other", [("tensor", "int64"), ("0-d", "float64"), ("tensor", "float64"), ("number", "float")])
@pytest.mark.parametrize(
    "call", ["a * b", "a / b", "b / a", "a ** b", "torch.maximum(a, b + a * 0)", "torch.cat([a, a * b])"]
)
def test_gradients_of_operands_of_two_dtypes(call: str, other: tuple[str, str]) -> None:
    found = []
    for library in (gg, torch):
        with compat.as_torch() if library is gg else contextlib.nullcontext():
            a = library.tensor([1.5, 2.5], requires_grad=True)
            y = called(call, library, a=a, b=promotion_calls.operand(library, other))
            y.sum().backward()
            found.append((dtype_of(y), dtype_of(a.grad), a.grad.tolist()))
    assert found[0][:2] == found[1][:2]
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=1e-5)


# --- the table ------------------------------------------------------------------------------------


def test_the_page_has_the_tables_of_now() -> None:
    page = promotion_calls.PAGE.read_text(encoding="utf-8")
    assert promotion_calls.with_tables(page) == page, "python -m tests.compat.promotion_calls --write"


def test_names_of_primitives_in_the_rule() -> None:
    assert {*BESIDE, *LIMITS, *WIDENED} <= {*REGISTRY}
