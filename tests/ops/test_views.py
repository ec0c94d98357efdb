"""Every op that declares the origin of its elements, and every view: `indices` and `write_back` against NumPy.

The forward of such an op is NumPy's. The fields declare it again, for native code and for writes; these tests compare
all readers of the fields with the forward, on the samples of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.engine.public
from glassgrad import errors
from glassgrad.ops.core import PRIMITIVES, Primitive
from glassgrad.ops.places import EVERYTHING, Slice
from glassgrad.ops.samples import S
from glassgrad.ops.views import read_only

BACKENDS = ("llvm", "numpy")
MOVING = [prim for prim in PRIMITIVES.values() if prim.indices is not None]
VIEWS = [prim for prim in PRIMITIVES.values() if prim.is_view]
# What the samples of the table leave out: negative steps and places, no dimensions, axes apart or turned around.
MORE = {
    "getitem": (S((4, 5), spec=(Slice(3, None, -2), -1)), S((3,), spec=(1,)), S((2, 3), spec=(EVERYTHING, None, 0))),
    "diagonal": (S((2, 3, 4), offset=-1, axis1=2, axis2=0), S((3, 3), offset=1, axis1=1, axis2=0)),
    "reshape": (S((3, 4), shape=(2, 6)), S((), shape=(1, 1))),
    "sliding_window": (S((3, 7, 2), axis=1, size=3, step=3),),
    "view_as_complex": (S((3, 2)),),
    "view_as_real": (S((3,)),),
}
CALLS = [
    (prim, sample)
    for prim in dict.fromkeys([*MOVING, *VIEWS])
    for sample in (*(prim.samples or ()), *MORE.get(prim.name, ()))
    if len(sample.args) == 1
]
every_call = pytest.mark.parametrize(("prim", "sample"), CALLS, ids=lambda one: getattr(one, "name", ""))


def drawn(prim: Primitive, sample: S) -> np.ndarray[Any, Any]:
    x = sample.draw(np.random.default_rng(3))[0]
    return x + 0.5j * x if prim.name == "view_as_real" else x


def written(prim: Primitive, sample: S, base: np.ndarray[Any, Any], factor: float) -> np.ndarray[Any, Any]:
    """Return the base after NumPy has multiplied the view of it."""
    base = base.copy()
    view = prim.evaluate(base, **sample.params)
    view *= factor
    return base


def test_every_view_is_called() -> None:
    # No gradient goes through the bits of a number; tests/compile/front/test_aliasing.py has writes to them.
    assert {prim for prim, _ in CALLS} == {*MOVING, *VIEWS} - {PRIMITIVES["view_bits"]}
    assert {"flip", "copy"} == {prim.name for prim in MOVING if not prim.is_view}


@every_call
def test_the_indices_are_those_of_the_forward(prim: Primitive, sample: S) -> None:
    if prim.indices is None:
        pytest.skip("it has no index map: the host computes it")
    x = drawn(prim, sample)
    y = prim.evaluate(x, **sample.params)
    found = prim.indices(tuple(np.indices(y.shape)), x, **sample.params)
    assert len(found) == x.ndim
    np.testing.assert_array_equal(np.broadcast_to(x[tuple(found)], y.shape), y)


@every_call
def test_a_view_is_the_memory_of_its_source_and_nothing_else_is(prim: Primitive, sample: S) -> None:
    base = gg.tensor(drawn(prim, sample))
    view = prim(base, **sample.params)
    assert np.shares_memory(view.array, base.array) == prim.is_view
    seen = view.array.copy()
    base.mul_(2)
    np.testing.assert_array_equal(view.array, 2 * seen if prim.is_view else seen)


def is_written(prim: Primitive) -> bool:
    return prim.is_view and prim.write_back is not read_only


@every_call
def test_a_write_to_a_view_reaches_its_source_and_the_tape(prim: Primitive, sample: S) -> None:
    array = drawn(prim, sample)
    x = gg.tensor(array, requires_grad=True)
    base = x * 1
    view = prim(base, **sample.params)
    if prim.write_back is read_only:
        with pytest.raises(errors.GlassgradError, match=r"in memory|read-only"):
            view.mul_(3)
        return
    view.mul_(3)
    np.testing.assert_array_equal(base.array, written(prim, sample, array, 3) if prim.is_view else array)
    if array.dtype.kind == "f":
        weights = np.random.default_rng(4).normal(size=array.shape)
        (base * weights).sum().backward()
        factors = written(prim, sample, np.ones_like(array), 3) if prim.is_view else 1
        np.testing.assert_allclose(x.grad.array, weights * factors)


@every_call
def test_a_view_follows_its_source_on_the_tape(prim: Primitive, sample: S) -> None:
    if not prim.is_view or prim.name == "view_as_real":
        pytest.skip("a copy, or complex")
    x, twin = (gg.tensor(drawn(prim, sample), requires_grad=True) for _ in range(2))
    base = x * 1
    view = prim(base, **sample.params)
    base.mul_(x)
    (view * view).abs().sum().backward()
    direct = prim(twin * twin, **sample.params)
    (direct * direct).abs().sum().backward()
    np.testing.assert_allclose(x.grad.array, twin.grad.array)


def programs(wanted: Callable[[Primitive], bool], run: Callable[..., Any], backend: str) -> None:
    """Compile `run` on every call of some ops, all in one step, and compare with eager mode."""
    chosen = [(prim, sample) for prim, sample in CALLS if wanted(prim) and prim.indices is not None]
    arrays = [gg.tensor(drawn(prim, sample)) for prim, sample in chosen]

    def step(xs: list[Any]) -> list[Any]:
        return [run(x, prim, sample) for x, (prim, sample) in zip(xs, chosen, strict=True)]

    compiled = gg.compile(step, backend=backend, strict=True)
    compiled(arrays)
    for one, other, (prim, _) in zip(compiled(arrays), step(arrays), chosen, strict=True):
        for part, like in zip(one, other, strict=True):
            np.testing.assert_allclose(part.array, like.array, rtol=1e-12, err_msg=prim.name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_programs_read_through_every_view(backend: str) -> None:
    def run(x: Any, prim: Primitive, sample: S) -> Any:
        return prim(x, **sample.params), prim(x * 2, **sample.params) + 1, prim(x, **sample.params).sum()

    programs(lambda _: True, run, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compiled_programs_write_through_every_view(backend: str) -> None:
    def run(x: Any, prim: Primitive, sample: S) -> Any:
        base = x * 2
        view = prim(base, **sample.params)
        view.mul_(3)
        base.add_(1)
        return base, view

    programs(is_written, run, backend)


def test_truth_values_in_an_index_are_read_alike_in_compiled_steps() -> None:
    keys = (True, False, (None, True), (slice(None), True), (True, 0), (slice(None), True, 1), (True, [1, 0], 0))

    def step(x: Any) -> Any:
        base = x * 1
        base[True, 0] = 7.0
        return [x[key] * 1 for key in keys], base

    x = gg.arange(6.0).reshape(2, 3)
    found, base = gg.compile(step, backend="llvm", strict=True)(x)
    for part, key in zip(found, keys, strict=True):
        np.testing.assert_array_equal(part.array, x[key].array, err_msg=str(key))
    np.testing.assert_array_equal(base.array, step(x)[1].array)


def test_a_batch_of_views_is_written_like_one() -> None:
    for prim, sample in CALLS:
        array = drawn(prim, sample)
        if not is_written(prim) or array.dtype.kind == "c" or prim.name == "view_as_complex":
            continue

        def run(x: Any, prim: Primitive = prim, sample: S = sample) -> Any:
            base = x * 1
            prim(base, **sample.params).mul_(3)
            return base

        found = gg.func.vmap(run)(gg.tensor(np.stack([array, -array])))
        expected = written(prim, sample, array, 3)
        np.testing.assert_array_equal(found.array, np.stack([expected, -expected]), err_msg=prim.name)


def test_a_write_to_an_expanded_tensor_is_refused_in_a_batch_too() -> None:
    with pytest.raises(errors.GlassgradError, match="one number in memory"):
        gg.func.vmap(lambda x: (x * 1).expand(2, 3).mul_(2))(gg.ones(2, 3))


# --- windows and strides ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "axes"),
    [((2, 3), None), (2, 1), (3, -2), ((2, 2), (1, 0)), ([2, 3], [-1, 1]), ((2, 3), (2, 2)), ((), ())],
)
def test_windows_along_several_axes_are_numpys(sizes: Any, axes: Any) -> None:
    x = np.random.default_rng(0).normal(size=(4, 5) if axes is None else (4, 5, 6))
    expected = np.lib.stride_tricks.sliding_window_view(x, sizes, axis=axes)
    np.testing.assert_array_equal(gg.sliding_window_view(gg.tensor(x), sizes, axes).numpy(), expected)


def test_windows_that_do_not_fit_are_refused() -> None:
    x = gg.ones((4, 5))
    with pytest.raises(errors.ArgumentError, match="2 sizes"):
        gg.sliding_window_view(x, 2)
    for size in (0, 6):
        with pytest.raises(errors.ArgumentError, match=r"between 1 and 5, with a positive step"):
            x.unfold(1, size)
    with pytest.raises(errors.ArgumentError, match=r"between 1 and 5, with a positive step"):
        x.unfold(1, 2, 0)
    with pytest.raises(errors.ArgumentError, match=r"between 1 and 1, with a positive step"):
        x[0, 0].unfold(0, 2)


def test_strides_stay_within_the_memory() -> None:
    x = gg.arange(4)
    for size, stride, offset in [
        ((1, 5), (1, 1), 0),
        ((2, 2), (2, 2), 0),
        ((1,), (1,), 4),
        ((), (), 4),
        ((2,), (1,), 3),
    ]:
        with pytest.raises(errors.ArgumentError, match="elements up to 3"):
            gg.as_strided(x, size, stride, offset)
    for size, stride, offset in [((2,), (-1,), 2), ((-1,), (1,), 0), ((2,), (1, 1), 0), ((2,), (1,), -1)]:
        with pytest.raises(errors.ArgumentError, match="one step for each of"):
            gg.as_strided(x, size, stride, offset)
    assert gg.as_strided(x, (), (), 3).item() == 3
    assert gg.as_strided(x[:1].clone(), (0,), (1,)).shape == gg.as_strided(gg.zeros(0), (0,), (1,)).shape == (0,)
    for offset in (0, 3, 4, 5):  # nothing is read, so that any place will do
        assert gg.as_strided(x, (0, 2), (1, 1), offset).shape == (0, 2)


def test_strides_inside_vmap_are_those_of_each_example() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    once = gg.func.vmap(lambda a: gg.as_strided(a, (2, 2, 2), (4, 2, 1)))(gg.tensor(x))
    np.testing.assert_array_equal(once.numpy(), x[:, :2].reshape(2, 2, 2, 2))
    turned = gg.func.vmap(lambda a: gg.as_strided(a, (1, 3), (3, 1), 3), 2)(gg.tensor(x))
    np.testing.assert_array_equal(turned.numpy(), [x[1:, :, n] for n in range(4)])
    twice = gg.func.vmap(gg.func.vmap(lambda a: gg.as_strided(a, (2, 3), (1, 1))))(gg.tensor(x))
    np.testing.assert_array_equal(twice.numpy(), np.lib.stride_tricks.sliding_window_view(x, 3, axis=2))
    with pytest.raises(errors.ArgumentError, match="a part of a larger tensor"):
        gg.func.vmap(lambda a: gg.as_strided(a, (2,), (1,), 1))(gg.tensor(x)[1:])
    with pytest.raises(errors.GlassgradError, match="inside vmap"):
        gg.func.vmap(lambda a: gg.as_strided(a.T, (2,), (1,)))(gg.tensor(x))
