"""NumPy's functions on tensors, with every keyword and all kinds of axes: NumPy is the oracle (`numpy_calls.py`).

A tensor gives NumPy's results; a tensor that requires a gradient may be refused, with an error that says so. Calls that
NumPy refuses are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from tests.interop.numpy_calls import TABLE, calls, told
from tests.versions import since_numpy

CHANGED = ("clip", "unique", "take_along_axis")  # in NumPy 2.1

POINT = "an array of no dimensions has the dimension 0, as in PyTorch"


def _of_a_point(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    return isinstance(args[0], np.ndarray) and not args[0].ndim and keywords.get("axis") is not None


def _stable_twice(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    return "kind" in keywords and "stable" in keywords


# Calls that NumPy refuses and we take.
TAKEN: dict[str, tuple[Callable[..., bool], str]] = {
    "sort": (_stable_twice, "a stable sort that is asked for twice is a stable sort"),
    **dict.fromkeys(
        (
            "mean",
            "max",
            "min",
            "amax",
            "amin",
            "average",
            "median",
            "squeeze",
            "flip",
            "vector_norm",
            "ptp",
            "std",
            "var",
            "fftshift",
            "norm",
        ),
        (_of_a_point, POINT),
    ),
}


def _call(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return what comes out, or the exception."""
    try:
        return TABLE[name].call(*args, **keywords)
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is compared
        return error


def _tensors(args: tuple[Any, ...], *, tracked: bool) -> tuple[Any, ...]:
    made = []
    for arg in args:
        follow = tracked and isinstance(arg, np.ndarray) and arg.dtype.kind == "f"
        made.append(gg.tensor(arg, requires_grad=follow) if isinstance(arg, np.ndarray) else arg)
        tracked = tracked and not follow
    return tuple(made)


def _leaves(y: Any) -> list[Any]:
    if isinstance(y, tuple | list):
        return [leaf for part in y for leaf in _leaves(part)]
    return [y.detach().numpy() if isinstance(y, gg.Tensor) else np.asarray(y)]


def _difference(ours: Any, theirs: Any) -> str:
    if isinstance(theirs, list) and not isinstance(ours, list):
        return f"a {type(ours).__name__} instead of a list"
    mine, other = _leaves(ours), _leaves(theirs)
    if [x.shape for x in mine] != [x.shape for x in other]:
        return f"shapes {[x.shape for x in mine]} instead of {[x.shape for x in other]}"
    if [x.dtype.kind for x in mine] != [x.dtype.kind for x in other]:
        return f"dtypes {[x.dtype for x in mine]} instead of {[x.dtype for x in other]}"
    same = all(np.allclose(a, b, rtol=1e-5, atol=1e-7, equal_nan=True) for a, b in zip(mine, other, strict=True))
    return "" if same else "other values"


def _fault(name: str, args: tuple[Any, ...], keywords: dict[str, Any], *, tracked: bool) -> str:
    theirs = _call(name, args, keywords)
    ours = _call(name, _tensors(args, tracked=tracked), keywords)
    if isinstance(theirs, Exception):
        excused = name in TAKEN and TAKEN[name][0](args, keywords)
        return "" if isinstance(ours, Exception) or excused else f"taken; NumPy: {theirs}"
    if isinstance(ours, Exception):
        clear = tracked and isinstance(ours, errors.GlassgradError)
        return "" if clear else f"refused: {ours!r}"
    return _difference(ours, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", [pytest.param(one, marks=since_numpy) if one in CHANGED else one for one in TABLE])
def test_every_argument_means_what_it_means_in_numpy(name: str, tracked: bool) -> None:
    wrong = [
        f"{name}{told(args, keywords)} {fault}"[:300]
        for args, keywords in calls(name)
        if (fault := _fault(name, args, keywords, tracked=tracked))
    ]
    assert wrong == []


# Calls that have to keep the gradient: each with its derivative in NumPy's terms.
A = np.random.default_rng(0).normal(size=(3, 4))
GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "sum over nothing": lambda a: np.sum(a * a, axis=()),
    "var over nothing": lambda a: np.var(a, axis=()) + a,
    "max over nothing": lambda a: np.max(a, axis=()),
    "nansum over nothing": lambda a: np.nansum(a, axis=(), keepdims=True),
    "sum of some": lambda a: np.sum(a, axis=1, where=A > 0, initial=2.0),
    "mean of some": lambda a: np.mean(a, where=A > 0),
    "max of some": lambda a: np.max(a, axis=0, where=A > 0, initial=-9.0),
    "prod of some": lambda a: np.prod(a, where=A > 0),
    "dot": lambda a: np.dot(a, 2.0) + np.dot(2.0, a) + np.dot(a, A.T)[:, :1] + np.dot(a, A[0])[:, None],
    "outer": lambda a: np.outer(a, A[0]),
    "inner": lambda a: np.inner(a, 2.0) + np.inner(a, A)[:, :1],
    "cross": lambda a: np.cross(a[:, :3], A[0, :3]) + np.cross(a[:3, :1], A[:3, :1], axis=0).sum(),
    "trace": lambda a: np.trace(a, offset=1) + np.trace(a[None], axis1=1, axis2=2) + np.linalg.trace(a[None]),
    "clip": lambda a: np.clip(a, None, None) + np.clip(a, max=0.5, min=None),
    "array_split": lambda a: np.concatenate(np.array_split(a, 2), axis=None),
    "tril": lambda a: np.tril(a[0]) + np.triu(a[0]),
    "roll": lambda a: np.roll(a, 1, (0, 1)) + np.roll(a, (1, 2)),
    "squeeze": lambda a: np.squeeze(a[:, :1], axis=1),
    "where": lambda a: np.where(A.astype(int), a, 0.0),
    "compress delete": lambda a: np.compress([1, 0, 1], a, axis=0) + np.delete(a, 1, axis=0),
    "concatenate": lambda a: np.concatenate([a, a * a], axis=None, dtype=np.float64),
    "qr": lambda a: np.linalg.qr(a.T, "r"),
    "take_along_axis": lambda a: np.take_along_axis(a, np.argsort(A)),
    "meshgrid": lambda a: np.meshgrid(a, A[0])[0],
    "vector_norm": lambda a: np.linalg.vector_norm(a, axis=()),
    "append": lambda a: np.append(a[0], [1.0], axis=0),
    "convolve": lambda a: np.convolve(a[0, :2], A[1], "same"),
    "rollaxis": lambda a: np.rollaxis(a[None], -1, 1),
}


@pytest.mark.parametrize("name", [pytest.param(one, marks=since_numpy) if one in CHANGED else one for one in GRADIENTS])
def test_gradients_of_what_means_something_else_in_pytorch(name: str) -> None:
    function = GRADIENTS[name]
    x = gg.tensor(A, requires_grad=True)
    y = function(x)
    np.testing.assert_allclose(y.detach().numpy(), function(A), rtol=1e-12)
    rng = np.random.default_rng(1)
    cotangent, direction = rng.normal(size=y.shape), rng.normal(size=A.shape)
    (y * gg.tensor(cotangent)).sum().backward()
    step = 1e-6
    difference = np.sum(cotangent * (function(A + step * direction) - function(A - step * direction))) / (2 * step)
    np.testing.assert_allclose(np.sum(x.grad.numpy() * direction), difference, rtol=1e-7, atol=1e-8)


def test_each_spelling_as_in_its_own_library() -> None:
    x = gg.tensor(A)
    assert np.sum(x, axis=()).shape == (3, 4)
    assert x.__array_namespace__().sum(x, axis=()).shape == (3, 4)
    assert gg.sum(x, ()).shape == ()
    assert x.sum(dim=()).shape == ()
    with pytest.raises(errors.ArgumentError, match="squeeze"):
        np.squeeze(gg.tensor(A, requires_grad=True), axis=1)
    assert x.squeeze(1).shape == (3, 4)
    assert isinstance(np.array_split(x, 2), list)
    assert isinstance(gg.tensor_split(x, 2), tuple)
