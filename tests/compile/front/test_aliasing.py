"""Results that share memory with their sources: in a compiled function as in eager mode, and as in PyTorch.

Each case applies an op to a tensor inside a function, then writes to one of the two, and compares both.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glassgrad as gg
from glassgrad.nn import functional as F

try:
    import torch
except ImportError:  # eager mode is then compared with nothing
    torch = None

BACKENDS = ("numpy", "llvm") if importlib.util.find_spec("llvmlite") else ("numpy",)
Op = Callable[[Any], Any]


def library(x: Any) -> Any:
    return gg if isinstance(x, gg.Tensor) else torch


def at(*parts: Any) -> Op:
    return lambda x: x[parts if len(parts) != 1 else parts[0]]


def method(name: str, *args: Any, **options: Any) -> Op:
    return lambda x: getattr(x, name)(*args, **options)


def as_dtype(name: str) -> Op:
    return lambda x: x.view(getattr(library(x), name))


def tensor_index(values: Any) -> Op:
    return lambda x: x[library(x).tensor(values)]


_ALL = slice(None)
# Ops that any tensor of one dimension or more can go through.
ANY: dict[str, Op] = {
    "[0]": at(0), "[-1]": at(-1), "[...]": at(...), "[()]": at(()), "[None]": at(None), "[:]": at(_ALL),
    "[True]": at(True), "[False]": at(False), "[True, :]": at(True, _ALL), "[None, True]": at(None, True),
    "[..., True]": at(..., True), "[np.True_]": at(np.True_), "[tensor(True)]": tensor_index(True),
    "[..., None]": at(..., None), "[::2]": at(slice(None, None, 2)), "[1:]": at(slice(1, None)),
    "[0:0]": at(slice(0, 0)), "[list]": at([0, 0]), "[array]": at(np.array([0])), "[[]]": at([]),
    "[tensor]": tensor_index([0]), "[np.int64]": at(np.int64(0)), "[range]": at(slice(0, 1)),
    "reshape(-1)": method("reshape", -1), "flatten": method("flatten"), "ravel": method("ravel"),
    "unsqueeze": method("unsqueeze", 0), "squeeze": method("squeeze"), "squeeze(0)": method("squeeze", 0),
    "detach": method("detach"), "contiguous": method("contiguous"), "clone": method("clone"),
    "to(same)": lambda x: x.to(x.dtype), "to(itself)": lambda x: x.to(x),
    "to(copy)": lambda x: x.to(x.dtype, copy=True), "cpu": method("cpu"), "type_as": lambda x: x.type_as(x),
    "view(same)": lambda x: x.view(x.dtype), "view_as": lambda x: x.reshape_as(x), "data": lambda x: x.data,
    "movedim": method("movedim", 0, -1), "transpose": method("transpose", 0, -1),
    "narrow": method("narrow", 0, 0, 1), "select": method("select", -1, 0), "unbind": lambda x: x.unbind(0)[0],
    "chunk": lambda x: x.chunk(2)[0], "split": lambda x: x.split(1)[-1], "iteration": lambda x: next(iter(x)),
    "tensor_split": lambda x: x.tensor_split(1)[0],
    "bits and back": lambda x: as_dtype("float64")(as_dtype("int64")(x)), "flip": method("flip", 0),
    "dropout in evaluation": lambda x: (F if isinstance(x, gg.Tensor) else torch.nn.functional).dropout(x, 0.5, False),
    "* 1": lambda x: x * 1, "+ 0": lambda x: x + 0, "sum of one": lambda x: x[:1].sum(0), "real": lambda x: x.real,
    "roll": method("roll", 1), "masked": lambda x: x.masked_fill(x > 1e9, 0.0),
}  # fmt: skip  # a table
# Ops on a matrix of 4 x 6.
MATRIX: dict[str, Op] = {
    "[1, 2]": at(1, 2), "[1, 2, ...]": at(1, 2, ...), "[True, 1]": at(True, 1), "[:, list]": at(_ALL, [1, 2]),
    "[mask]": at(np.array([True, False, True, False])), "[:, None, 1]": at(_ALL, None, 1),
    "0-d [()]": lambda x: x[0, 0][()], "0-d [...]": lambda x: x[0, 0][...], "0-d [None]": lambda x: x[0, 0][None],
    "0-d [True]": lambda x: x[0, 0][True], "0-d reshape": lambda x: x[0, 0].reshape(1),
    "0-d flip": lambda x: x[0, 0].flip(0),
    "T": lambda x: x.T, "mT": lambda x: x.mT, "mH": lambda x: x.mH, "t": method("t"),
    "permute": method("permute", 1, 0), "swapaxes": method("swapaxes", 0, 1),
    "reshape": method("reshape", 3, 8), "view": method("view", 6, 4), "unflatten": method("unflatten", 1, (2, 3)),
    "reshape of T": lambda x: x.T.reshape(24), "reshape of T that fits": lambda x: x.T.reshape(6, 2, 2),
    "reshape of columns": lambda x: x[:, ::2].reshape(12), "reshape of rows": lambda x: x[::2].reshape(2, 3, 2),
    "contiguous T": lambda x: x.T.contiguous(), "contiguous T of T": lambda x: x.T.T.contiguous(),
    "contiguous rows": lambda x: x[1:3].contiguous(), "contiguous columns": lambda x: x[:, 1:3].contiguous(),
    "diagonal": method("diagonal"), "diagonal(1)": method("diagonal", 1), "diag": method("diag"),
    "hsplit": lambda x: x.hsplit(2)[1], "vsplit": lambda x: x.vsplit(2)[1], "tril": method("tril"),
    "view of other sizes": lambda x: as_dtype("float64")(as_dtype("int32")(x)),
    "view of bytes": lambda x: as_dtype("float64")(as_dtype("uint8")(x)[0]),
    "view of columns": lambda x: as_dtype("float64")(as_dtype("int64")(x[:, ::2])),
    "view of T": lambda x: as_dtype("float64")(as_dtype("int64")(x.T)),
    "real part": lambda x: library(x).view_as_complex(x.reshape(4, 3, 2)).real,
    "imaginary part": lambda x: library(x).view_as_complex(x.reshape(4, 3, 2)).imag,
    "complex and back": lambda x: library(x).view_as_real(library(x).view_as_complex(x.reshape(4, 3, 2))),
    "permute of three": lambda x: x.reshape(2, 2, 6).permute(2, 0, 1)[1], "tile": method("tile", (1, 1)),
    "where": lambda x: library(x).where(x > -1, x, x), "cat of one": lambda x: library(x).cat([x]),
    "rot90": method("rot90"), "atleast_3d": lambda x: library(x).atleast_3d(x),
}  # fmt: skip  # a table
# Eager mode refuses a write to these, as several elements may be one number.
READ_ONLY: dict[str, Op] = {
    "expand": lambda x: x[:1].expand(4, 6), "expand(same)": method("expand", 4, 6),
    "broadcast_to": method("broadcast_to", (4, 6)),
    "expand of a new axis": method("expand", 2, -1, -1), "as_strided": method("as_strided", (2, 3), (6, 1)),
    "as_strided with an offset": method("as_strided", (2, 3), (6, 2), 1), "unfold": method("unfold", 1, 2, 2),
    "unfold that overlaps": method("unfold", 0, 2, 1),
}  # fmt: skip  # a table


def written(op: Op, to: str) -> Op:
    """Return a function of a tensor that applies the op to a copy, writes to one of both, and returns both."""

    def function(x: Any) -> Any:
        base = x + 0.5
        result = op(base)
        (base if to == "base" else result).add_(100.0)
        return base + 0, result + 0

    return function


def written_argument(op: Op, to: str) -> Op:
    """As `written`, of the argument itself."""

    def function(x: Any) -> Any:
        result = op(x)
        (x if to == "base" else result).add_(100.0)
        return result

    return function


def outcome(function: Op, x: Any) -> list[Any]:
    found = function(x)
    return [np.array(part.numpy()) for part in (*(found if isinstance(found, tuple) else (found,)), x)]


def numbers() -> Any:
    return np.arange(1.0, 25.0).reshape(4, 6)


def agrees(op: Op, to: str, wrap: Callable[[Op, str], Op], backend: str) -> None:
    function = wrap(op, to)
    expected = outcome(function, gg.tensor(numbers()))
    step = gg.compile(function, backend=backend, strict=op not in EAGER)
    for _ in range(2):
        found = outcome(step, gg.tensor(numbers()))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


# These are not traced: the function runs eagerly, and says so.
EAGER = {READ_ONLY["as_strided"], READ_ONLY["as_strided with an offset"]}
WRITABLE = ANY | MATRIX
CASES = [(name, op, to) for name, op in WRITABLE.items() for to in ("base", "result")]
CASES += [(name, op, "base") for name, op in READ_ONLY.items()]
each_case = pytest.mark.parametrize(("op", "to"), [case[1:] for case in CASES], ids=[f"{n}, {t}" for n, _, t in CASES])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.filterwarnings("ignore:.*runs eagerly:glassgrad.errors.CompileWarning")
@each_case
def test_compiled_functions_share_memory_as_eager_mode_does(op, to, backend):
    agrees(op, to, written, backend)
    agrees(op, to, written_argument, backend)


@pytest.mark.skipif(torch is None, reason="compares with PyTorch")
@each_case
def test_eager_mode_shares_memory_as_pytorch_does(op, to):
    for wrap in (written, written_argument):
        try:
            expected = outcome(wrap(op, to), torch.tensor(numbers()))
        except IndexError:
            pytest.skip("an index that PyTorch does not take")
        for one, other in zip(outcome(wrap(op, to), gg.tensor(numbers())), expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("op", READ_ONLY.values(), ids=READ_ONLY)
def test_writes_that_eager_mode_refuses_are_refused(op, backend):
    for wrap in (written, written_argument):
        with pytest.raises(gg.errors.AutogradError):
            wrap(op, "result")(gg.tensor(numbers()))
        with pytest.raises((gg.errors.AutogradError, gg.errors.CompileError)):
            gg.compile(wrap(op, "result"), backend=backend, strict=True)(gg.tensor(numbers()))


def chains(sizes: tuple[int, int]) -> Any:
    return st.lists(st.sampled_from(sorted(ANY)), min_size=sizes[0], max_size=sizes[1])


def chained(names: list[str]) -> Op:
    def op(x: Any) -> Any:
        for name in names:
            x = ANY[name](x)
        return x

    return op


def _agrees_in_chains(first: str | None, names: list[str], to: str, backend: str) -> None:
    start = MATRIX[first] if first else (lambda x: x)

    def op(x: Any) -> Any:
        return chained(names)(start(x))

    try:
        outcome(written(op, to), gg.tensor(numbers()))
    except (gg.errors.GlassgradError, IndexError, RuntimeError, TypeError, ValueError, StopIteration):
        return  # no such chain
    agrees(op, to, written, backend)
    agrees(op, to, written_argument, backend)


_DRAWN = {
    "first": st.one_of(st.none(), st.sampled_from(sorted(MATRIX))),
    "to": st.sampled_from(("base", "result")),
    "backend": st.sampled_from(BACKENDS),
}


@given(names=chains((2, 3)), **_DRAWN)
@settings(max_examples=40, deadline=None)
def test_chains_share_memory_as_eager_mode_does(first, names, to, backend):
    _agrees_in_chains(first, names, to, backend)


@pytest.mark.slow
@given(names=chains((2, 4)), **_DRAWN)
@settings(max_examples=1500, deadline=None)
def test_many_chains_share_memory_as_eager_mode_does(first, names, to, backend):
    _agrees_in_chains(first, names, to, backend)
