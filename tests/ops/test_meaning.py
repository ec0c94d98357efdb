"""Calls with a specific meaning in PyTorch: dtypes of whole numbers, integer images, fill values; against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.nn.functional as F
from glassgrad import errors
from tests.ops.against_torch import compare, real

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

WHOLE = {
    "int64": np.array([[5, -5, 7], [-8, 3, 2]]),
    "int32": np.array([[5, -5, 7], [-8, 3, 2]], np.int32),
    "uint8": np.array([[250, 10, 3], [7, 255, 100]], np.uint8),
    "bool": np.array([[True, False, True], [False] * 3]),
    "float32": np.array([[1.5, -2.5, 3.0], [0.0, 7.75, -1.0]], np.float32),
}
DTYPES = ("int64", "int32", "int16", "uint8", "bool", "float64")


def same(ours: Any, theirs: Any) -> None:
    assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def dtype_of(library: Any, name: str) -> Any:
    return getattr(library, name)


# --- totals ---------------------------------------------------------------------------------------

TOTALS: dict[str, Callable[..., Any]] = {
    "sum": lambda lib, x, **k: lib.sum(x, **k),
    "sum of rows": lambda lib, x, **k: lib.sum(x, 1, True, **k),
    "prod": lambda lib, x, **k: lib.prod(x, **k),
    "prod of rows": lambda lib, x, **k: lib.prod(x, 1, **k),
    "cumsum": lambda lib, x, **k: lib.cumsum(x, 1, **k),
    "cumprod": lambda lib, x, **k: lib.cumprod(x, 0, **k),
    "nansum": lambda lib, x, **k: lib.nansum(x, **k),
}


@pytest.mark.parametrize("given", WHOLE)
@pytest.mark.parametrize("name", TOTALS)
def test_totals_keep_the_dtype_that_is_asked_for(name: str, given: str) -> None:
    x, other = gg.tensor(WHOLE[given]), torch.tensor(WHOLE[given])
    if name == "nansum" and given == "bool":
        pytest.skip("PyTorch has no nansum of truth values")
    same(TOTALS[name](gg, x), TOTALS[name](torch, other))
    for dtype in DTYPES:
        if (given, dtype) == ("float32", "uint8") or (dtype == "bool" and name.startswith("cum")):
            continue  # a negative number has no defined value there; PyTorch has no such thing
        same(TOTALS[name](gg, x, dtype=dtype_of(gg, dtype)), TOTALS[name](torch, other, dtype=dtype_of(torch, dtype)))


def test_totals_of_integers_inside_a_compiled_step() -> None:
    step = gg.compile(lambda x: (x.sum(dtype=gg.uint8), x.cumsum(0, dtype=gg.int16), x.prod(1)))
    x = gg.tensor(WHOLE["uint8"])
    for mine, expected in zip(step(x), (x.sum(dtype=gg.uint8), x.cumsum(0, dtype=gg.int16), x.prod(1)), strict=True):
        assert mine.dtype == expected.dtype
        np.testing.assert_array_equal(mine.numpy(), expected.numpy())


# --- quotients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_quotients_of_integers_rounded_towards_zero(dtype: str) -> None:
    a, b = (x.reshape(-1) for x in np.meshgrid(np.arange(-9, 10), [-4, -3, -1, 1, 2, 5]))
    a, b = (a % 200, abs(b)) if dtype == "uint8" else (a, b)
    a, b = a.astype(dtype), b.astype(dtype)
    for mode in ("trunc", "floor"):
        theirs = torch.div(torch.tensor(a), torch.tensor(b), rounding_mode=mode)
        same(gg.div(gg.tensor(a), gg.tensor(b), rounding_mode=mode), theirs)
        same(gg.tensor(a).div(3, rounding_mode=mode), torch.tensor(a).div(3, rounding_mode=mode))
        compiled = gg.compile(lambda x, y, m=mode: gg.div(x, y, rounding_mode=m))
        same(compiled(gg.tensor(a), gg.tensor(b)), theirs)
    compare(
        lambda x: gg.div(x, 0.3, rounding_mode="trunc") + x,
        lambda x: torch.div(x, 0.3, rounding_mode="trunc") + x,
        real(5),
    )


# --- filling --------------------------------------------------------------------------------------

FILLED = [(given, value) for given in WHOLE for value in (10, 2.5, -1, True, 0)] + [
    ("int64", -2.9), ("float32", float("-inf")), ("float32", 1e30), ("uint8", 255), ("uint8", -255),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("given", "value"), FILLED)
def test_masked_fill_keeps_the_dtype(given: str, value: Any) -> None:
    mask = np.array([True, False, True])
    x, other = gg.tensor(WHOLE[given]), torch.tensor(WHOLE[given])
    expected = other.masked_fill(torch.tensor(mask), value)
    same(x.masked_fill(gg.tensor(mask), value), expected)
    same(gg.compile(lambda x, m: x.masked_fill(m, value))(x, gg.tensor(mask)), expected)
    same(x.masked_fill(mask, gg.tensor(value)), other.masked_fill(torch.tensor(mask), torch.tensor(value)))
    same(x.masked_fill_(gg.tensor(mask), value), other.masked_fill_(torch.tensor(mask), value))


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("uint8", 300),
        ("uint8", -300),
        ("int32", 2**40),
        ("int64", float("inf")),
        ("int64", float("nan")),
        ("float32", 1e300),
        ("int64", 1j),
        ("float32", np.ones(1)),
        ("float32", np.ones(3)),
    ],
)
def test_masked_fill_refuses_what_does_not_fit(given: str, value: Any) -> None:
    mask = np.array([True, False, True])
    with pytest.raises(RuntimeError):
        torch.tensor(WHOLE[given]).masked_fill(
            torch.tensor(mask), torch.tensor(value) if isinstance(value, np.ndarray) else value
        )
    with pytest.raises(errors.ArgumentError, match="masked_fill"):
        gg.tensor(WHOLE[given]).masked_fill(gg.tensor(mask), value)
    with pytest.raises(errors.ArgumentError, match="boolean"):
        gg.tensor(WHOLE[given]).masked_fill(gg.tensor([1, 0, 1]), 0)


def test_the_gradient_of_what_fills() -> None:
    mask = np.array([True, False, True])
    compare(
        lambda x, v: x.masked_fill(gg.tensor(mask), v.sum()),
        lambda x, v: x.masked_fill(torch.tensor(mask), v.sum()),
        real(3),
        real(1),
    )


# --- what makes tensors ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int16"])
def test_linspace_of_integers(dtype: str) -> None:
    ends = [(0, 10), (0.5, 7.9), (3, 100), (7, 7)] + ([] if dtype == "uint8" else [(-10, 10), (10, -11), (-0.5, -7.9)])
    for start, end in ends:
        for steps in (0, 1, 2, 3, 4, 5, 6, 7, 12, 33):
            theirs = torch.linspace(start, end, steps, dtype=dtype_of(torch, dtype))
            same(gg.linspace(start, end, steps, dtype=dtype_of(gg, dtype)), theirs)


def test_the_dtype_of_normal_numbers() -> None:
    kinds = {
        name: (gg.zeros(2, dtype=dtype_of(gg, name)), torch.zeros(2, dtype=dtype_of(torch, name)))
        for name in ("float16", "float32", "float64")
    }
    for mine, theirs in kinds.values():
        assert str(gg.normal(2.7, mine).dtype) in str(torch.normal(2.7, theirs).dtype)
        assert str(gg.normal(mine, 0.5).dtype) in str(torch.normal(theirs, 0.5).dtype)
        for mine_too, theirs_too in kinds.values():
            assert str(gg.normal(mine, mine_too).dtype) in str(torch.normal(theirs, theirs_too).dtype)
    assert gg.normal(0, 1, (2,)).dtype == gg.float32
    assert gg.normal(0, gg.ones(2), dtype=gg.float64).dtype == gg.float64


def test_randint_by_keyword() -> None:
    assert set(gg.randint(3, size=(200,)).tolist()) == {0, 1, 2}
    assert set(gg.randint(high=3, size=(200,)).tolist()) == {0, 1, 2}
    assert set(gg.randint(high=3, low=1, size=(200,)).tolist()) == {1, 2}
    for given in ({"high": 3}, {"size": (2,)}):
        with pytest.raises(errors.ArgumentError, match="randint"):
            gg.randint(**given)


def test_conversions_take_a_memory_format() -> None:
    x = gg.ones(2)
    for name in ("float", "double", "half", "long", "int", "short", "char", "byte", "bool"):
        theirs = getattr(torch.ones(2), name)(memory_format=torch.preserve_format)
        same(getattr(x, name)(memory_format=gg.preserve_format), theirs)


def test_signs_and_complex_numbers() -> None:
    compare(lambda x: +x, lambda x: +x, real(3))
    assert (+gg.tensor([1, -2])).tolist() == [1, -2]
    with pytest.raises(errors.KindError):
        +gg.tensor([True])
    assert complex(gg.tensor(2.0)) == 2 + 0j
    assert complex(gg.tensor([1 + 2j])) == 1 + 2j
    with pytest.raises(errors.ArgumentError):
        complex(gg.ones(2))
    for x in (gg.tensor(1.5), gg.ones(2, dtype=gg.int64)):
        with pytest.raises(TypeError):
            range(x)


# --- images of integers ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest", "nearest-exact"])
@pytest.mark.parametrize("size", [(3, 3), (9, 4), (5, 17), (7, 6), (2, 1)])
def test_images_of_bytes_are_resized(mode: str, size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 7, 6), dtype=np.uint8)
    corners = (None, True) if mode.startswith("bi") else (None,)
    for align in corners:
        theirs = torch.nn.functional.interpolate(torch.tensor(image), size, mode=mode, align_corners=align).numpy()
        mine = F.interpolate(gg.tensor(image), size, mode=mode, align_corners=align).numpy()
        assert mine.dtype == np.uint8
        # PyTorch's weights are whole numbers of 1/2**15 or so, which may decide about the last unit.
        assert np.abs(mine.astype(int) - theirs.astype(int)).max() <= (1 if mode.startswith("bi") else 0)
        assert np.mean(mine != theirs) < 0.02


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding": 1},
        {"padding": 1, "count_include_pad": False},
        {"padding": 1, "ceil_mode": True, "stride": 2},
        {"divisor_override": 7},
    ],
)
def test_means_of_windows_of_integers(options: dict[str, Any]) -> None:
    image = np.random.default_rng(0).integers(-500, 500, (2, 3, 7, 6))
    ones = (image > 0).astype(np.int64) * 49
    for x in (image, ones):
        same(F.avg_pool2d(gg.tensor(x), 3, **options), torch.nn.functional.avg_pool2d(torch.tensor(x), 3, **options))
    if "divisor_override" not in options:
        theirs = torch.nn.functional.avg_pool1d(torch.tensor(image[0]), 3, **options)
        same(F.avg_pool1d(gg.tensor(image[0]), 3, **options), theirs)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool"])
def test_what_rounding_would_spoil_is_refused(dtype: str) -> None:
    x = gg.ones(1, 1, 4, 4).to(dtype_of(gg, dtype))
    calls: list[Callable[[], Any]] = [
        lambda: F.interpolate(x, 3, mode="area"),
        lambda: F.adaptive_avg_pool2d(x, 1),
        lambda: F.adaptive_avg_pool2d(x, 3),
        lambda: F.adaptive_avg_pool1d(x[0], 2),
        lambda: F.interpolate(x[0], 3, mode="linear"),
    ]
    if dtype != "int64":
        calls.append(lambda: F.avg_pool2d(x, 2))
    if dtype != "uint8":
        calls.append(lambda: F.interpolate(x, 3, mode="bilinear"))
    for call in calls:
        with pytest.raises(errors.KindError, match="float"):
            call()


# --- the most frequent element --------------------------------------------------------------------


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_mode(dim: int, keepdim: bool) -> None:
    x = np.random.default_rng(dim + 1).integers(0, 4, (5, 7)).astype(float)
    mine, theirs = gg.mode(gg.tensor(x), dim, keepdim), torch.mode(torch.tensor(x), dim, keepdim)
    same(mine.values, theirs.values)
    same(mine.indices, theirs.indices)
    compare(lambda x: x.mode(dim, keepdim).values, lambda x: x.mode(dim, keepdim).values, x)
    compiled = gg.compile(lambda x: gg.mode(x, dim, keepdim))(gg.tensor(x))
    same(compiled[0], theirs.values)
    same(compiled[1], theirs.indices)
    mapped = gg.vmap(lambda row: gg.mode(row).values)(gg.tensor(x))
    same(mapped, torch.mode(torch.tensor(x)).values)


def test_mode_of_other_kinds() -> None:
    for x in ([3, 1, 1, 3, 2], [True, False, True], [[1, 1], [2, 3]], 3.0):
        mine, theirs = gg.mode(gg.tensor(x)), torch.mode(torch.tensor(x))
        assert (mine.values.tolist(), mine.indices.tolist()) == (theirs.values.tolist(), theirs.indices.tolist())
    assert callable(gg.mode)
    assert gg.mode(gg.zeros(3, 0), 0).values.shape == (0,)
    with pytest.raises(errors.ArgumentError):
        gg.mode(gg.zeros(3, 0), 1)
    assert gg.tensor([float("nan"), 1.0, float("nan")]).mode().values.item() == 1.0


# --- whole numbers where numbers are reduced by place ---------------------------------------------


@pytest.mark.parametrize("given", ["int64", "int32", "uint8", "bool", "float32"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_keeps_the_dtype(reduce: str, include_self: bool, given: str) -> None:
    if (reduce, given) == ("mean", "bool"):
        pytest.skip("PyTorch has no mean of truth values")
    rng = np.random.default_rng(0)
    x, src = rng.integers(0, 9, (6, 4)).astype(given), rng.integers(0, 9, (5, 4)).astype(given)
    index = rng.integers(0, 4, (5, 4))
    mine = gg.tensor(x).scatter_reduce(0, gg.tensor(index), gg.tensor(src), reduce, include_self=include_self)
    theirs = torch.tensor(x).scatter_reduce(
        0, torch.tensor(index), torch.tensor(src), reduce, include_self=include_self
    )
    assert str(mine.dtype) in str(theirs.dtype)
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)


def test_limits_counts_and_ranges_of_integers() -> None:
    x = np.arange(-9, 10)
    for low, high in ((-0.5, 0.5), (-2, 3), (0.0, 0.0), (-1, 1)):
        same(F.hardtanh(gg.tensor(x), low, high), torch.nn.functional.hardtanh(torch.tensor(x), low, high))
    same(F.relu6(gg.tensor(x)), torch.nn.functional.relu6(torch.tensor(x)))
    counted = [np.array([0, 1, 1, 3]), np.array([1, 2, 3, 4])]
    same(gg.bincount(*map(gg.tensor, counted)), torch.bincount(*map(torch.tensor, counted)))
    for bounds in ((1.0, 5.000001, 2.0), (2.1, -2.9, -1.0), (3.1,), (0, 3.9)):
        same(gg.arange(*bounds, dtype=gg.int64), torch.arange(*bounds, dtype=torch.int64))
    same(
        gg.tensor([1.0, 2.0]).gather(0, gg.zeros(2, 0, dtype=gg.int64)),
        torch.tensor([1.0, 2.0]).gather(0, torch.zeros(2, 0, dtype=torch.int64)),
    )
    with pytest.raises(errors.ArgumentError, match="negative integer powers"):
        gg.tensor([2]) ** gg.tensor([-1])


@pytest.mark.parametrize("given", WHOLE)
@pytest.mark.parametrize("backend", ["eager", "numpy", "llvm"])
def test_steps_of_whole_numbers_are_whole_numbers(given: str, backend: str) -> None:
    x, zero = WHOLE[given], WHOLE[given] - WHOLE[given] if given != "bool" else WHOLE[given] ^ WHOLE[given]
    step = gg.heaviside if backend == "eager" else gg.compile(gg.heaviside, backend=backend, strict=True)
    for a, b in ((x, x), (zero, x), (zero[0], x)):
        same(step(gg.tensor(a), gg.tensor(b)), torch.heaviside(torch.tensor(a), torch.tensor(b)))
    if backend == "eager":  # NumPy's function means what NumPy means
        assert np.heaviside(gg.tensor(x), gg.tensor(x)).dtype == np.heaviside(x, x).dtype
