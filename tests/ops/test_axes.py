"""Small helpers for shapes, axes and fills that several op files share, against NumPy and PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops import axes, complex_input, core, expects
from tests.ops.against_torch import real, torch

FILLS = [
    0, 1, -1, 2.7, -2.7, -0.5, -1.0, -0.0, 127, 128, -128, -129, 255, 256, -255, -256, -257, 32767, 32768, -32768,
    -32769, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63), 2**63, 1e30, -1e30, 65504.0, 65520.0,
    1e39, float("inf"), float("-inf"), float("nan"), True, False, 1 + 2j, complex(1e39, 1), complex(0, float("inf")),
    np.int64(-1), np.float32(2.5),
]  # fmt: skip  # a table


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "complex64"]
)
def test_what_a_fill_makes_of_a_number(dtype: str) -> None:
    """It drops the fraction, lets negative integers wrap around, and refuses what is out of range."""
    mask = [True, False]
    for value in FILLS:
        target = gg.zeros(2, dtype=getattr(gg, dtype))
        try:
            expected = torch.zeros(2, dtype=getattr(torch, dtype)).masked_fill(torch.tensor(mask), value).numpy()
        except (RuntimeError, TypeError):
            with pytest.raises(errors.GlassgradError, match=f"a number that {dtype} can hold"):
                target.masked_fill(gg.tensor(mask), value)
        else:
            found = target.masked_fill(gg.tensor(mask), value).numpy()
            np.testing.assert_array_equal(found, expected, strict=True)
            assert type(axes.fitting("fill", value, np.dtype(dtype))) in {np.dtype(dtype).type, float}


def test_a_fill_may_be_an_array_of_one_number() -> None:
    x, mask = gg.zeros(2), gg.tensor([True, False])
    assert x.masked_fill(mask, gg.tensor(2.5)).tolist() == [2.5, 0]
    assert x.masked_fill(mask, gg.tensor(2)).dtype == gg.float32
    half, same = np.full((), 1.5, np.float16), np.full((), 1.5, np.float32)
    assert axes.fitting("fill", half, np.dtype(np.float32)).dtype == np.float32
    assert axes.fitting("fill", same, same.dtype) is same
    for shape in ((1,), (2, 3)):
        with pytest.raises(errors.GlassgradError) as refusal:
            x.masked_fill(mask, gg.zeros(shape))
        assert f"an array of shape {shape}" in str(refusal.value)
        assert "one number" in str(refusal.value)


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (2, 1, 3, 4)])
def test_the_last_two_dimensions_swapped(shape: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(axes.swap_last(real(*shape)), np.swapaxes(real(*shape), -1, -2), strict=True)


@pytest.mark.parametrize("size", [3, 50])
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axis", [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()])
def test_what_was_reduced_is_spread_again(axis: tuple[int, ...], keepdims: bool, size: int) -> None:
    x = real(size, 4, size)
    total = np.asarray(x.sum(axis, keepdims=keepdims))
    expected = np.broadcast_to(x.sum(axis, keepdims=True), x.shape)
    assert axes.kept_shape(x.shape, axis) == x.sum(axis, keepdims=True).shape
    assert axes.reduced_shape(x, axis=axis, keepdims=keepdims) == total.shape
    found = axes.spread(total, x.shape, axis, keepdims)
    np.testing.assert_allclose(found, expected, rtol=1e-14, strict=True)
    assert found.flags.writeable == (size == 3), "a large one is a view that repeats"
    spread = axes.spread(gg.tensor(total), x.shape, axis, keepdims)
    np.testing.assert_allclose(spread.numpy(), expected, rtol=1e-14, strict=True)
    restored = axes.restore(gg.tensor(total), x.shape, axis, keepdims)
    assert restored.shape == axes.kept_shape(x.shape, axis)


def test_scalars_of_numpy_are_spread_as_arrays_are() -> None:
    np.testing.assert_array_equal(axes.spread(np.float32(2), (2, 3), (0, 1), False), np.full((2, 3), 2, np.float32))


def test_counts_and_rows() -> None:
    assert axes.count((2, 3, 4), (0, 2)) == 8
    assert axes.count((2, 3), ()) == 1
    assert axes.as_row(np.float64(3)).shape == (1,)
    row = np.ones((2, 3))
    assert axes.as_row(row) is row
    assert axes.as_real(np.ones(2, np.uint8)).dtype == np.float32
    assert axes.as_real(np.ones(2, np.int64)).dtype == np.float64
    for dtype in ("f2", "f8", "c8"):
        given = np.ones(2, dtype)
        assert axes.as_real(given) is given


def test_totals_of_unsigned_numbers_are_signed() -> None:
    y = np.ones(2, np.uint64)
    assert axes.widened(y, np.ones(2, np.uint8), None).dtype == np.int64
    assert axes.widened(y, np.ones(2, np.uint8), np.uint8).dtype == np.uint8
    whole = np.ones(2, np.int64)
    assert axes.widened(whole, np.ones(2, np.int8), None) is whole
    assert axes.widened(whole, whole, np.int64) is whole


def test_a_number_counts_as_one_element() -> None:
    for function, results in ((gg.cummax, 2), (gg.sort, 2), (gg.softmax, 1)):
        found: Any = function(gg.tensor(2.0), 0)
        found = found if results == 2 else (found,)
        assert [one.shape for one in found] == [()] * results
    assert type(gg.sort(gg.tensor(2.0), 0)) is type(gg.sort(gg.tensor([2.0]), 0))


def test_values_are_there_or_refused() -> None:
    array = np.ones(2)
    assert axes.concrete(array, "op") is array
    assert axes.concrete(gg.tensor(array), "op").tolist() == [1, 1]
    for given in (np.float64(2), 2.0, [2.0, 3.0]):
        found = axes.concrete(given, "op")
        assert type(found) is np.ndarray
        assert found.tolist() == (given if isinstance(given, list) else 2.0)
    with pytest.raises(errors.GlassgradError, match="inside vmap a tensor stands for 2 examples at once"):
        gg.func.vmap(lambda x, n: x.repeat_interleave(n, 0))(gg.ones(2, 3), gg.ones(2, 3, dtype=gg.int64))
    with pytest.raises(errors.GlassgradError, match="repeat_interleave"):
        gg.compile(lambda x, n: x.repeat_interleave(n, 0), strict=True)(gg.ones(3), gg.tensor([1, 2, 1]))


@pytest.mark.parametrize(("ndim", "dim", "bounds"), [(2, 2, "-2 and 1"), (3, -4, "-3 and 2"), (0, 1, "-1 and 0")])
def test_a_dim_out_of_range_is_told_its_bounds(ndim: int, dim: int, bounds: str) -> None:
    x = gg.ones(*[2] * ndim)
    for call in (lambda: x.sum(dim), lambda: x.sum((dim,)), lambda: gg.softmax(x, dim)):
        with pytest.raises(
            IndexError, match=rf"dim {dim} is out of range for ({ndim}|1) dimensions[\s\S]*between {bounds}\."
        ):
            call()
    for low in range(-max(ndim, 1), max(ndim, 1)):
        np.testing.assert_array_equal(x.sum(low).numpy(), x.numpy().sum(low) if ndim else 1)


def test_lists_and_foreign_arrays_are_indices_of_integers() -> None:
    for given in ([0, 2], np.array([0, 2]), np.array([0, 2], np.int32), torch.tensor([0, 2])):
        found = expects.as_index("take", given)
        assert np.asarray(found).tolist() == [0, 2]
        assert found.dtype in {np.dtype(np.int64), np.dtype(np.int32)}
    for empty in ([], np.zeros(0, np.uint8), np.zeros((2, 0), np.int16)):
        found = expects.as_index("take", empty)
        assert found.dtype == np.int64
        assert found.shape == np.shape(empty)
    for wrong in ([0.5], [True], np.array([1], np.uint8)):
        with pytest.raises(errors.ArgumentError, match="integers: int64 or int32"):
            expects.as_index("take", wrong)


def test_a_complex_number_is_found_behind_real_ones() -> None:
    real_ones: list[Any] = [np.ones(2), np.ones(2, np.float32), np.ones(2, np.int64), 1.0, None, gg.ones(1), "x"]
    for one in real_ones:
        assert complex_input.complex_dtype([one]) is None
        assert complex_input.complex_dtype([one, 1j]) == np.complex128
        assert complex_input.complex_dtype([one, [one, np.ones(1, np.complex64)]]) == np.complex64


def test_the_slope_of_a_choice_is_chosen_natively_where_it_pays() -> None:
    asked: list[int] = []

    def natively(c: Any, y: Any, x: Any) -> Any:
        asked.append(c.size)
        return c * 0 + 7 if c.size % 2 else None

    rule = core._selecting(lambda y, x: x > 0, True, natively)
    for size in (249_999, 250_000, 250_001):
        x, c = np.linspace(-1, 1, size), np.linspace(2, 3, size)
        np.testing.assert_array_equal(rule(c, x, x), np.full(size, 7.0) if size == 250_001 else np.where(x > 0, c, 0))
    assert asked == [250_000, 250_001]
    large = np.linspace(-1, 1, 250_001)
    for c, x in ((gg.tensor(large), large), (large, gg.tensor(large)), (gg.tensor(large), gg.tensor(large))):
        asked.clear()
        slope = core._selecting(lambda y, x: x > 0, False, None)(c, x, x)
        np.testing.assert_array_equal(np.asarray(slope), np.where(large > 0, 0, large))
        assert isinstance(slope, gg.Tensor)
    core._selecting(lambda y, x: x > 0, True, natively)(gg.tensor(large), large, large)
    assert not asked
