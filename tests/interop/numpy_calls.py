"""Calls of NumPy's functions with their whole signatures: every keyword, with all meaningful values.

`TABLE` lists for each function its positional arguments, in several versions, and for each keyword its possible values.
An ndarray among the positional ones becomes a tensor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
MOST = 40  # calls of one function


class Entry(NamedTuple):
    """One function: its arguments in several versions, and the candidates of its keywords."""

    call: Callable[..., Any]
    args: tuple[tuple[Any, ...], ...]
    keywords: dict[str, tuple[Any, ...]]


def real(*shape: int) -> Array:
    return np.random.default_rng([3, *shape]).normal(size=shape)


def holed(*shape: int) -> Array:
    x = real(*shape)
    x.reshape(-1)[::3] = np.nan
    return x


class Absent:
    """Marks a keyword that is not given."""

    def __repr__(self) -> str:
        return "-"


ABSENT = Absent()
NO: tuple[Any, ...] = (ABSENT,)
MATRIX, CUBE, ROW, NUMBER = real(3, 4), real(2, 3, 4), real(4), np.asarray(1.5)
EACH = ((MATRIX,), (ROW,), (CUBE,), (NUMBER,))
AXES: tuple[Any, ...] = (ABSENT, None, 0, 1, -1, (0, 1), (-1,), (), 5, (0, 0))
ONE_AXIS: tuple[Any, ...] = (ABSENT, None, 0, 1, -1, 5)
KEEP: tuple[Any, ...] = (ABSENT, True, False)
DTYPES: tuple[Any, ...] = (ABSENT, np.float32, np.int64)
WHERE: tuple[Any, ...] = (ABSENT, True, np.array([True, False, True, True]))
TOTAL = {"axis": AXES, "dtype": DTYPES, "keepdims": KEEP, "initial": (ABSENT, 2.0), "where": WHERE}
EXTREME = {"axis": AXES, "keepdims": KEEP, "initial": (ABSENT, 9.0)}
SPREAD = {"axis": AXES, "ddof": (ABSENT, 1, 0.5), "keepdims": KEEP, "where": WHERE}
RANKED = {"axis": AXES, "keepdims": KEEP, "overwrite_input": (ABSENT, True)}
FRACTIONS = ((MATRIX, 0.3), (CUBE, [0.1, 0.9]), (MATRIX, np.array([[0.2, 0.5]])))
PERCENTS = ((MATRIX, 30), (CUBE, [10, 90]))
METHODS = {"axis": AXES, "keepdims": KEEP, "method": (ABSENT, "linear", "lower", "nearest", "median_unbiased")}
PAIRS = ((MATRIX, real(3, 4)), (ROW, ROW), (MATRIX, 2.0), (2.0, MATRIX), (NUMBER, NUMBER))


def norm(x: Any, **keywords: Any) -> Any:
    return np.linalg.norm(x, **keywords)


TABLE: dict[str, Entry] = {
    "sum": Entry(np.sum, EACH, TOTAL),
    "prod": Entry(np.prod, EACH, TOTAL),
    "mean": Entry(np.mean, EACH, {"axis": AXES, "dtype": (ABSENT, np.float32), "keepdims": KEEP, "where": WHERE}),
    "std": Entry(np.std, EACH, SPREAD),
    "var": Entry(np.var, EACH, SPREAD),
    "max": Entry(np.max, EACH, EXTREME),
    "min": Entry(np.min, EACH, EXTREME),
    "amax": Entry(np.amax, EACH, EXTREME),
    "amin": Entry(np.amin, EACH, EXTREME),
    "ptp": Entry(np.ptp, EACH, {"axis": AXES, "keepdims": KEEP}),
    "all": Entry(np.all, ((MATRIX > 0,), (CUBE,)), {"axis": AXES, "keepdims": KEEP, "where": WHERE}),
    "any": Entry(np.any, ((MATRIX > 0,), (CUBE,)), {"axis": AXES, "keepdims": KEEP, "where": WHERE}),
    "count_nonzero": Entry(np.count_nonzero, ((MATRIX > 0,), (CUBE,)), {"axis": AXES, "keepdims": KEEP}),
    "average": Entry(np.average, EACH, {"axis": AXES, "keepdims": KEEP}),
    "average weighted": Entry(
        np.average,
        ((MATRIX,),),
        {"axis": (ABSENT, 0, 1, -1), "weights": (abs(MATRIX), abs(ROW)), "returned": (ABSENT, True), "keepdims": KEEP},
    ),
    "median": Entry(np.median, EACH, RANKED),
    "quantile": Entry(np.quantile, FRACTIONS, METHODS),
    "percentile": Entry(np.percentile, PERCENTS, METHODS),
    "nansum": Entry(np.nansum, ((holed(3, 4),),), {"axis": AXES, "dtype": (ABSENT, np.float32), "keepdims": KEEP}),
    "nanprod": Entry(np.nanprod, ((holed(3, 4),),), {"axis": AXES, "keepdims": KEEP}),
    "nanmean": Entry(np.nanmean, ((holed(3, 4),),), {"axis": AXES, "dtype": (ABSENT, np.float32), "keepdims": KEEP}),
    "nanstd": Entry(np.nanstd, ((holed(3, 4),),), {"axis": AXES, "ddof": (ABSENT, 1), "keepdims": KEEP}),
    "nanvar": Entry(np.nanvar, ((holed(3, 4),),), {"axis": AXES, "ddof": (ABSENT, 1), "keepdims": KEEP}),
    "nanmax": Entry(np.nanmax, ((holed(3, 4),),), {"axis": AXES, "keepdims": KEEP}),
    "nanmin": Entry(np.nanmin, ((holed(3, 4),),), {"axis": AXES, "keepdims": KEEP}),
    "nanmedian": Entry(np.nanmedian, ((holed(3, 4),),), {"axis": AXES, "keepdims": KEEP}),
    "argmax": Entry(np.argmax, EACH, {"axis": ONE_AXIS, "keepdims": KEEP}),
    "argmin": Entry(np.argmin, EACH, {"axis": ONE_AXIS, "keepdims": KEEP}),
    "sort": Entry(np.sort, EACH[:3], {"axis": ONE_AXIS, "kind": (ABSENT, "stable"), "stable": (ABSENT, True)}),
    "argsort": Entry(np.argsort, EACH[:3], {"axis": ONE_AXIS, "stable": (ABSENT, True)}),
    "cumsum": Entry(np.cumsum, EACH, {"axis": ONE_AXIS, "dtype": DTYPES}),
    "cumprod": Entry(np.cumprod, EACH, {"axis": ONE_AXIS, "dtype": DTYPES}),
    "nancumsum": Entry(np.nancumsum, ((holed(3, 4),),), {"axis": ONE_AXIS}),
    "diff": Entry(np.diff, EACH[:3], {"n": (ABSENT, 0, 2, 9), "axis": (ABSENT, 0, -1, 5), "prepend": (ABSENT, 0.0)}),
    "ediff1d": Entry(np.ediff1d, EACH[:2], {"to_end": (ABSENT, 1.0), "to_begin": (ABSENT, 2.0)}),
    "gradient": Entry(np.gradient, ((ROW,), (MATRIX,), (ROW, 0.5)), {"axis": (ABSENT, 0), "edge_order": (ABSENT, 2)}),
    "trapezoid": Entry(
        np.trapezoid,
        ((MATRIX,), (ROW,)),
        {"axis": (ABSENT, 0, -1), "dx": (ABSENT, 0.5), "x": (ABSENT, np.arange(4.0), np.arange(3.0))},
    ),
    "clip": Entry(
        np.clip, ((MATRIX, None, None), (MATRIX, -1, None), (MATRIX, None, 0.5), (MATRIX, -ROW, abs(ROW))), {}
    ),
    "clip by name": Entry(np.clip, ((MATRIX,),), {"min": (ABSENT, -0.5, None), "max": (ABSENT, 0.5, None)}),
    "round": Entry(np.round, EACH, {"decimals": (ABSENT, 1, -1)}),
    "squeeze": Entry(np.squeeze, ((real(1, 3, 1),), (MATRIX,), (NUMBER,)), {"axis": AXES}),
    "expand_dims": Entry(np.expand_dims, EACH, {"axis": (0, 1, -1, (0, 2), (-1, 0), (), 5, (0, 0))}),
    "transpose": Entry(np.transpose, EACH, {"axes": (ABSENT, None, (1, 0), (0, 2, 1), (-1, 0, 1), (0, 0))}),
    "swapaxes": Entry(np.swapaxes, ((CUBE, 0, 1), (CUBE, -1, 0), (MATRIX, 0, 5)), {}),
    "moveaxis": Entry(
        np.moveaxis, ((CUBE, 0, -1), (CUBE, (0, 1), (1, 2)), (CUBE, (0, 1), (1, 1)), (CUBE, 0, (1, 2))), {}
    ),
    "rollaxis": Entry(
        np.rollaxis, ((CUBE, 2), (CUBE, 2, 1), (CUBE, 0, 3), (CUBE, 1, 0), (CUBE, 1, 3), (CUBE, -1, 1)), {}
    ),
    "roll": Entry(
        np.roll, ((MATRIX, 1), (MATRIX, (1, 2)), (CUBE, 2)), {"axis": (ABSENT, None, 0, (0, 1), (0, 0), (), 5)}
    ),
    "flip": Entry(np.flip, EACH, {"axis": AXES}),
    "fliplr": Entry(np.fliplr, EACH, {}),
    "flipud": Entry(np.flipud, EACH, {}),
    "rot90": Entry(np.rot90, EACH, {"k": (ABSENT, 2, -1), "axes": (ABSENT, (1, 0), (0, 0))}),
    "reshape": Entry(
        np.reshape, ((MATRIX, (4, 3)), (MATRIX, -1), (MATRIX, (2, -1)), (MATRIX, 5)), {"order": (ABSENT, "C", "F")}
    ),
    "ravel": Entry(np.ravel, EACH, {"order": (ABSENT, "C", "F")}),
    "repeat": Entry(np.repeat, ((MATRIX, 2), (MATRIX, [1, 0, 2]), (NUMBER, 3)), {"axis": ONE_AXIS}),
    "tile": Entry(np.tile, ((MATRIX, 2), (MATRIX, (2, 1)), (ROW, (2, 2)), (MATRIX, ()), (NUMBER, 3)), {}),
    "take": Entry(
        np.take,
        ((MATRIX, [0, 2]), (MATRIX, 1), (CUBE, [[0], [1]]), (MATRIX, [7, -1])),
        {"axis": ONE_AXIS, "mode": (ABSENT, "raise", "wrap", "clip")},
    ),
    "take_along_axis": Entry(np.take_along_axis, ((MATRIX, np.argsort(MATRIX, 1)),), {"axis": (0, 1, -1, None)}),
    "compress": Entry(np.compress, (([True, False, True], MATRIX), ([False, True], ROW)), {"axis": (ABSENT, 0)}),
    "delete": Entry(np.delete, ((MATRIX, 1), (MATRIX, [0, 1])), {"axis": (ABSENT, 0, 1)}),
    "insert": Entry(np.insert, ((ROW, 1, 5.0), (MATRIX, 1, 5.0)), {"axis": (ABSENT, 0)}),
    "diag": Entry(np.diag, EACH, {"k": (ABSENT, 1, -2, 9)}),
    "diagonal": Entry(np.diagonal, EACH, {"offset": (ABSENT, 1, -1), "axis1": (ABSENT, 1, -1), "axis2": (ABSENT, 0)}),
    "diagflat": Entry(np.diagflat, EACH, {"k": (ABSENT, 1)}),
    "trace": Entry(
        np.trace,
        EACH,
        {"offset": (ABSENT, 1, -1, 9), "axis1": (ABSENT, 1, 2), "axis2": (ABSENT, 0, 1), "dtype": (ABSENT, np.float32)},
    ),
    "tril": Entry(np.tril, EACH[:3], {"k": (ABSENT, 1, -1)}),
    "triu": Entry(np.triu, EACH[:3], {"k": (ABSENT, 1, -1)}),
    "vander": Entry(np.vander, ((ROW,),), {"N": (ABSENT, 2), "increasing": (ABSENT, True)}),
    "concatenate": Entry(
        lambda a, b, **k: np.concatenate([a, b], **k),
        ((MATRIX, MATRIX), (ROW, ROW)),
        {"axis": ONE_AXIS, "dtype": DTYPES[:2]},
    ),
    "stack": Entry(
        lambda a, b, **k: np.stack([a, b], **k), ((MATRIX, MATRIX), (ROW, real(3))), {"axis": (ABSENT, 0, -1, 5)}
    ),
    "hstack": Entry(lambda a, b: np.hstack([a, b]), ((MATRIX, MATRIX), (ROW, ROW), (NUMBER, ROW)), {}),
    "vstack": Entry(lambda a, b: np.vstack([a, b]), ((MATRIX, MATRIX), (ROW, ROW), (MATRIX, ROW)), {}),
    "dstack": Entry(lambda a, b: np.dstack([a, b]), ((MATRIX, MATRIX), (ROW, ROW)), {}),
    "column_stack": Entry(lambda a, b: np.column_stack([a, b]), ((MATRIX, MATRIX), (ROW, ROW)), {}),
    "block": Entry(lambda a, b: np.block([[a, b], [b, a]]), ((MATRIX, MATRIX),), {}),
    "append": Entry(np.append, ((MATRIX, MATRIX), (ROW, 2.0), (ROW, [1.0])), {"axis": (ABSENT, None, 0)}),
    "split": Entry(np.split, ((MATRIX, 3), (MATRIX, [1]), (MATRIX, 2), (ROW, [1, 9])), {"axis": (ABSENT, 0, 1)}),
    "array_split": Entry(np.array_split, ((MATRIX, 2), (MATRIX, [1]), (ROW, 3)), {"axis": (ABSENT, 0, 1)}),
    "hsplit": Entry(np.hsplit, ((MATRIX, 2), (ROW, [1]), (MATRIX, 3)), {}),
    "vsplit": Entry(np.vsplit, ((MATRIX, 3), (ROW, 2)), {}),
    "dsplit": Entry(np.dsplit, ((CUBE, 2), (MATRIX, 2)), {}),
    "unstack": Entry(np.unstack, EACH[:3], {"axis": (ABSENT, -1)}) if hasattr(np, "unstack") else Entry(np.sum, (), {}),
    "pad": Entry(
        np.pad,
        ((MATRIX, 1), (ROW, (1, 2)), (MATRIX, ((0, 1), (2, 0)))),
        {"mode": (ABSENT, "edge", "reflect", "symmetric", "wrap", "mean"), "constant_values": (ABSENT,)},
    ),
    "pad constant": Entry(
        np.pad, ((MATRIX, 1), (MATRIX, ((0, 1), (2, 0)))), {"constant_values": (ABSENT, 2.0, (1.0, 2.0))}
    ),
    "where": Entry(np.where, ((MATRIX > 0, MATRIX, 0.0), (MATRIX, MATRIX, ROW), (MATRIX > 0,), (1, ROW, 0.0)), {}),
    "select": Entry(lambda a, **k: np.select([a > 1, a > 0], [a, -a], **k), EACH, {"default": (ABSENT, 7.0)}),
    "nan_to_num": Entry(
        np.nan_to_num, ((holed(3, 4),),), {"copy": (ABSENT, True), "nan": (ABSENT, 1.0), "posinf": (ABSENT, 1)}
    ),
    "dot": Entry(
        np.dot,
        (
            (MATRIX, MATRIX.T),
            (ROW, ROW),
            (MATRIX, 2.0),
            (2.0, MATRIX),
            (MATRIX, ROW),
            (CUBE, MATRIX.T),
            (ROW, CUBE.swapaxes(1, 2)),
            (MATRIX, MATRIX),
            (NUMBER, NUMBER),
        ),
        {},
    ),
    "vdot": Entry(np.vdot, ((MATRIX, MATRIX), (ROW, ROW), (MATRIX, ROW)), {}),
    "inner": Entry(np.inner, PAIRS, {}),
    "outer": Entry(np.outer, ((MATRIX, ROW), (ROW, ROW), (2.0, ROW), (NUMBER, NUMBER)), {}),
    "kron": Entry(np.kron, ((MATRIX, ROW), (ROW, ROW), (MATRIX, 2.0)), {}),
    "cross": Entry(
        np.cross,
        (
            (real(3), real(4, 3)),
            (real(4, 3), real(4, 3)),
            (real(4, 1, 3), real(5, 3)),
            (real(3, 4), real(3, 4)),
            (real(4), real(4)),
        ),
        {"axis": (ABSENT, 0, -1), "axisa": (ABSENT, 0), "axisc": (ABSENT, 0)},
    ),
    "tensordot": Entry(np.tensordot, ((MATRIX, MATRIX), (CUBE, CUBE)), {"axes": (ABSENT, 0, 1, 2, ([0], [0]), (1, 1))}),
    "matmul": Entry(np.matmul, ((MATRIX, MATRIX.T), (ROW, ROW), (CUBE, MATRIX.T), (MATRIX, 2.0), (MATRIX, MATRIX)), {}),
    "einsum": Entry(
        lambda a, **k: np.einsum("ij,kj->ik", a, a, **k), ((MATRIX,),), {"optimize": (ABSENT, True, "greedy")}
    ),
    "convolve": Entry(np.convolve, ((ROW, real(3)), (real(2), ROW)), {"mode": (ABSENT, "full", "same", "valid")}),
    "correlate": Entry(np.correlate, ((ROW, real(3)), (real(2), ROW)), {"mode": (ABSENT, "full", "same", "valid")}),
    "polyval": Entry(np.polyval, ((ROW, MATRIX), ([1.0, 2.0], ROW)), {}),
    "meshgrid": Entry(
        np.meshgrid,
        ((ROW, real(3)), (ROW,), (ROW, real(3), real(2)), (MATRIX, ROW)),
        {"indexing": (ABSENT, "ij", "xy"), "sparse": (ABSENT, True)},
    ),
    "broadcast_to": Entry(
        np.broadcast_to, ((ROW, (3, 4)), (MATRIX, (2, 3, 4)), (ROW, (4, 3)), (NUMBER, ()), (NUMBER, 3)), {}
    ),
    "broadcast_arrays": Entry(np.broadcast_arrays, ((ROW, MATRIX), (ROW, real(3))), {}),
    "atleast_1d": Entry(np.atleast_1d, (*EACH, (ROW, NUMBER)), {}),
    "atleast_2d": Entry(np.atleast_2d, (*EACH, (ROW, NUMBER)), {}),
    "atleast_3d": Entry(np.atleast_3d, (*EACH, (ROW, NUMBER)), {}),
    "unique": Entry(
        np.unique,
        ((np.array([3.0, 1.0, 3.0]),), (np.array([[1.0, 2.0], [1.0, 2.0]]),)),
        {
            "return_index": (ABSENT, True),
            "return_inverse": (ABSENT, True),
            "return_counts": (ABSENT, True),
            "axis": (ABSENT, 0),
        },
    ),
    "searchsorted": Entry(np.searchsorted, ((np.sort(ROW), MATRIX), (np.sort(ROW), 0.1)), {"side": (ABSENT, "right")}),
    "digitize": Entry(np.digitize, ((MATRIX, [-1.0, 0.0, 1.0]),), {"right": (ABSENT, True)}),
    "bincount": Entry(np.bincount, ((np.array([0, 1, 1, 3]),),), {"weights": (ABSENT, ROW), "minlength": (ABSENT, 7)}),
    "histogram": Entry(
        np.histogram, EACH, {"bins": (ABSENT, 3), "range": (ABSENT, (-1, 1)), "density": (ABSENT, True)}
    ),
    "nonzero": Entry(np.nonzero, ((MATRIX > 0,), (ROW,)), {}),
    "argwhere": Entry(np.argwhere, ((MATRIX > 0,), (ROW,)), {}),
    "isclose": Entry(np.isclose, PAIRS, {"rtol": (ABSENT, 0.5), "atol": (ABSENT, 1.0), "equal_nan": (ABSENT, True)}),
    "allclose": Entry(np.allclose, PAIRS, {"rtol": (ABSENT, 0.5), "atol": (ABSENT, 1.0)}),
    "isin": Entry(
        np.isin, ((np.array([1, 2, 3]), [1, 3]),), {"invert": (ABSENT, True), "assume_unique": (ABSENT, True)}
    ),
    "interp": Entry(np.interp, ((ROW, [-1.0, 0.0, 1.0], [1.0, 2.0, 0.0]),), {"left": (ABSENT, 7.0)}),
    "cov": Entry(np.cov, ((MATRIX,), (ROW,)), {"rowvar": (ABSENT, False), "bias": (ABSENT, True), "ddof": (ABSENT, 0)}),
    "corrcoef": Entry(np.corrcoef, ((MATRIX,),), {"rowvar": (ABSENT, False)}),
    "zeros_like": Entry(np.zeros_like, EACH, {"dtype": (ABSENT, np.float32), "shape": (ABSENT, (2, 2))}),
    "ones_like": Entry(np.ones_like, EACH, {"dtype": (ABSENT, np.int64), "shape": (ABSENT, (2, 2))}),
    "full_like": Entry(
        np.full_like, ((MATRIX, 7), (ROW, 2.5)), {"dtype": (ABSENT, np.int64), "shape": (ABSENT, (2, 2))}
    ),
    "copy": Entry(np.copy, EACH, {"order": (ABSENT, "C")}),
    "real": Entry(np.real, EACH, {}),
    "imag": Entry(np.imag, EACH, {}),
    "angle": Entry(np.angle, EACH, {"deg": (ABSENT, True)}),
    "sinc": Entry(np.sinc, EACH, {}),
    "i0": Entry(np.i0, EACH, {}),
    "fix": Entry(np.fix, EACH, {}),
    "norm": Entry(
        norm,
        (*EACH[:3], (NUMBER,)),
        {"ord": (ABSENT, None, 1, 2, np.inf, "fro", "nuc", 0, 3), "axis": AXES, "keepdims": KEEP},
    ),
    "vector_norm": Entry(np.linalg.vector_norm, EACH, {"axis": AXES, "keepdims": KEEP, "ord": (ABSENT, 1, np.inf)}),
    "matrix_norm": Entry(np.linalg.matrix_norm, EACH[:3], {"keepdims": KEEP, "ord": (ABSENT, 1, "nuc")}),
    "det": Entry(np.linalg.det, ((real(3, 3),), (real(2, 3, 3),), (MATRIX,)), {}),
    "inv": Entry(np.linalg.inv, ((real(3, 3),), (real(2, 3, 3),), (MATRIX,)), {}),
    "pinv": Entry(np.linalg.pinv, ((MATRIX,), (CUBE,)), {"rcond": (ABSENT, 0.5), "hermitian": (ABSENT, False)}),
    "svd": Entry(np.linalg.svd, ((MATRIX,),), {"full_matrices": (ABSENT, False), "compute_uv": (ABSENT, False)}),
    "qr": Entry(np.linalg.qr, ((MATRIX,), (MATRIX.T,)), {"mode": (ABSENT, "reduced", "r", "complete")}),
    "matrix_power": Entry(
        np.linalg.matrix_power, ((real(3, 3), 3), (real(3, 3), -1), (real(3, 3), 0), (MATRIX, 2)), {}
    ),
    "matrix_rank": Entry(np.linalg.matrix_rank, ((MATRIX,), (CUBE,)), {"tol": (ABSENT, 0.5), "rtol": (ABSENT, 0.1)}),
    "slogdet": Entry(np.linalg.slogdet, ((real(3, 3),), (real(2, 3, 3),)), {}),
    "cond": Entry(np.linalg.cond, ((real(3, 3),),), {"p": (ABSENT, 1, -2, np.inf, "fro")}),
    "linalg.trace": Entry(np.linalg.trace, EACH[:3], {"offset": (ABSENT, 1)}),
    "linalg.diagonal": Entry(np.linalg.diagonal, EACH[:3], {"offset": (ABSENT, 1)}),
    "linalg.cross": Entry(
        np.linalg.cross, ((real(3), real(4, 3)), (real(4, 3), real(4, 3))), {"axis": (ABSENT, 0, -1)}
    ),
    "linalg.outer": Entry(np.linalg.outer, ((ROW, ROW), (MATRIX, ROW)), {}),
    "multi_dot": Entry(lambda a: np.linalg.multi_dot([a, a.T, a]), ((MATRIX,),), {}),
    "lstsq": Entry(
        lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], ((MATRIX.T, real(4)), (MATRIX.T, real(4, 2))), {}
    ),
    "fft": Entry(
        np.fft.fft, ((MATRIX,), (ROW,)), {"n": (ABSENT, 3, 6), "axis": (ABSENT, 0), "norm": (ABSENT, "ortho")}
    ),
    "irfft": Entry(np.fft.irfft, ((ROW,),), {"n": (ABSENT, 5), "norm": (ABSENT, "forward")}),
    "fftshift": Entry(np.fft.fftshift, EACH[:3], {"axes": (ABSENT, 0, (0, 1))}),
}


def calls(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the calls of a function: all combinations, or `MOST` drawn by a fixed seed."""
    entry = TABLE[name]
    every = [
        (args, {key: value for key, value in zip(entry.keywords, values, strict=True) if value is not ABSENT})
        for args in entry.args
        for values in itertools.product(*entry.keywords.values())
    ]
    if len(every) > MOST:
        chosen = np.random.default_rng(len(every)).choice(len(every), MOST, replace=False)
        every = [every[at] for at in sorted(chosen)]
    yield from every


def told(args: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """Return the arguments as a text that names shapes and dtypes."""
    parts = [f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x) for x in args]
    parts += [f"{key}={'array' if isinstance(x, np.ndarray) else x!r}" for key, x in keywords.items()]
    return f"({', '.join(parts)})"
