"""Calls that PyTorch refuses raise an error of ours; calls that it accepts mean the same.

The calls are combinations of good and bad arguments (`refusals.py`). The exceptions are listed below, each with its
reason; an exception that is no longer needed fails.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.ops.refusals import TABLE, calls, told

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

WIDER = "NumPy takes it, and what it means is clear"
DTYPE = "other integers, or another precision, are converted without loss"


class Exempt(NamedTuple):
    """Calls of an op that PyTorch and we treat differently, and why."""

    calls: Callable[..., bool]
    reason: str


def _is(dtype: str) -> Callable[[Any], bool]:
    return lambda x: isinstance(x, np.ndarray) and str(x.dtype) == dtype


def _any(*dtypes: str) -> Callable[..., bool]:
    return lambda *args: any(_is(dtype)(arg) for dtype in dtypes for arg in args)


def _empty(*args: Any) -> bool:
    return any(isinstance(arg, np.ndarray) and not arg.size for arg in args)


# Taken by us only.
TAKEN: dict[str, tuple[Exempt, ...]] = {
    "one_hot": (Exempt(_any("int32", "uint8"), DTYPE), Exempt(_empty, "no numbers are no classes, if 0 are asked for")),
    "take_along_dim": (Exempt(_any("int32", "uint8"), DTYPE),),
    "take": (Exempt(_any("int32", "uint8"), DTYPE),),
    "embedding": (Exempt(_any("uint8"), DTYPE),),
    "cross_entropy": (Exempt(_any("int32"), DTYPE),),
    "binary_cross_entropy": (Exempt(_any("int64"), DTYPE),),
    "multinomial": (Exempt(_any("int64"), DTYPE),),
    "dot": (Exempt(_any("int64"), DTYPE),),
    "inverse": (Exempt(_any("int64"), WIDER),),
    "det": (Exempt(_any("int64"), WIDER),),
    "cholesky": (Exempt(_any("int64"), WIDER),),
    "quantile": (Exempt(_any("float32"), DTYPE), Exempt(lambda x, q, dim: np.ndim(q) > 1, WIDER)),
    "clamp": (Exempt(lambda *_: True, "a tensor and a number as bounds"),),
    "logsumexp": (Exempt(lambda x, dim: dim == (), "PyTorch fails by accident: its own shapes disagree"),),
    "pad reflected": (Exempt(lambda *_: True, "borders of any dimensions, with or without a batch"),),
    "pad around": (Exempt(lambda *_: True, "borders of any dimensions, with or without a batch"),),
}
# Taken by PyTorch only.
REFUSED: dict[str, tuple[Exempt, ...]] = {
    "unfold": (Exempt(lambda x, dim, size, step: size == 0, "windows of nothing"),),
    "bincount": (Exempt(lambda x, *_: not x.size, "weights of nothing that are not empty"),),
    "scatter": (Exempt(_empty, "an index of nothing with a source of other dimensions"),),
    "scatter_add": (Exempt(_empty, "an index of nothing with a source of other dimensions"),),
    "take_along_dim": (Exempt(lambda x, i, dim: abs(i).max() > 1, "PyTorch does not look at such an index"),),
    "repeat": (Exempt(_empty, "a negative count, of nothing"),),
    "tile": (Exempt(_empty, "a negative count, of nothing"),),
    "cummax": (Exempt(_empty, "PyTorch does not look at the dimension of nothing"),),
    "diff": (Exempt(lambda x, n, dim: n == 0, "PyTorch does not look at the dimension of no differences"),),
    "linear": (Exempt(lambda x, w, b: w.ndim == 1, "a weight without rows"),),
    "cov": (Exempt(_empty, "covariances of nothing"),),
}
# Of other values.
DIFFERENT: dict[str, tuple[Exempt, ...]] = {
    name: (Exempt(_any("uint8"), "an index of bytes is a mask there, deprecated"),) for name in ("getitem", "index_put")
}
MASKS_OF_BYTES = frozenset(DIFFERENT)


def _tensors(library: Any, args: tuple[Any, ...]) -> list[Any]:
    return [library.tensor(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def _outcome(library: Any, name: str, args: tuple[Any, ...]) -> Any:
    """Return what comes out, or the exception."""
    try:
        return TABLE[name].call(library, *_tensors(library, args))
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is compared
        return error


def _leaves(y: Any) -> list[Any]:
    return [leaf for part in y for leaf in _leaves(part)] if isinstance(y, tuple | list) else [np.asarray(y)]


def _agree(ours: Any, theirs: Any) -> bool:
    mine, other = _leaves(ours), _leaves(theirs)
    return len(mine) == len(other) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        for a, b in zip(mine, other, strict=True)
    )


def _judge(name: str, args: tuple[Any, ...]) -> tuple[str, dict[str, tuple[Exempt, ...]] | None]:
    """Return what is wrong with a call of ours, as a text, and the table that may excuse it."""
    theirs, ours = _outcome(torch, name, args), _outcome(gg, name, args)
    if isinstance(theirs, Exception):
        if not isinstance(ours, Exception):
            return f"taken, PyTorch: {theirs}", TAKEN
        return ("", None) if isinstance(ours, errors.GlassgradError) else (f"not an error of ours: {ours!r}", None)
    if isinstance(ours, Exception):
        return f"refused: {ours}", REFUSED
    return ("", None) if _agree(ours, theirs) else ("another value", DIFFERENT)


def _has(name: str) -> bool:
    """Tell whether we have the op at all."""
    return not isinstance(_outcome(gg, name, next(calls(name))), errors.MissingError)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE)
def test_bad_and_good_arguments(name: str) -> None:
    if not _has(name):
        pytest.skip("there is no such op here")
    wrong = []
    for args in calls(name):
        if name in MASKS_OF_BYTES and _any("uint8")(*args):
            continue
        fault, table = _judge(name, args)
        if fault and not (table is not None and any(exempt.calls(*args) for exempt in table.get(name, ()))):
            wrong.append(f"{name}{told(args)} {fault}"[:300])
    assert wrong == []


@pytest.mark.filterwarnings("ignore")
def test_no_exception_is_idle() -> None:
    """Every exception is needed by some call."""
    idle = []
    for table in (TAKEN, REFUSED):
        for name, exempts in table.items():
            if name == "cholesky":
                continue  # only some versions of LAPACK get that far
            faults = [(args, *_judge(name, args)) for args in calls(name)]
            idle += [
                (name, exempt.reason)
                for exempt in exempts
                if not any(fault and found is table and exempt.calls(*args) for args, fault, found in faults)
            ]
    assert idle == []


INDEXING = (
    "roll", "flip", "gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add", "index_copy",
    "index_fill", "take_along_dim", "masked_fill", "masked_scatter", "where", "one_hot", "embedding", "permute",
    "squeeze", "topk", "kthvalue", "split", "cat", "stack", "getitem", "diag", "tril", "reshape", "dot", "bmm",
)  # fmt: skip  # a table
AT_MOST = 5  # calls of each op


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INDEXING)
def test_a_compiled_step_refuses_the_same(name: str) -> None:
    bad = [args for args in calls(name) if isinstance(_outcome(gg, name, args), errors.GlassgradError)]
    taken = []
    for args in bad[:: max(1, len(bad) // AT_MOST)][:AT_MOST]:
        places = [at for at, arg in enumerate(args) if isinstance(arg, np.ndarray)]

        def step(*tensors: Any, args: tuple[Any, ...] = args, places: list[int] = places) -> Any:
            whole = list(args)
            for at, tensor in zip(places, tensors, strict=True):
                whole[at] = tensor
            return TABLE[name].call(gg, *whole)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gg.compile(step)(*[gg.tensor(args[at]) for at in places])
        except errors.GlassgradError:
            continue
        taken.append(told(args))
    assert taken == []
