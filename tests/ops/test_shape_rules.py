"""The shape and dtype that an entry declares for traces, against those of its forward's result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad.ops.core import PRIMITIVES, Primitive
from glassgrad.ops.places import ARRAY
from glassgrad.ops.samples import S, integers
from tests.ops.cases import Case, cases
from tests.ops.test_views import CALLS

# Those with companions are decomposed before anybody asks.
ALL = [case for case in cases(differentiable=False) if not case.prim.companions]
# Calls that no sample makes.
MORE = [
    ("matmul", S((3,), (3,))), ("matmul", S((3,), (2, 3, 4))), ("matmul", S((5, 2, 3), (3,))),
    ("matmul", S((5, 1, 2, 3), (4, 3, 6))), ("matmul", S((0, 3), (3, 2))),
    ("topk", S((4, 3, 2), k=2, axis=0, largest=True, ordered=True)),
    ("kth", S((4, 3, 2), k=2, axis=1)), ("mode", S((4, 3, 2), axis=0)),
    ("getitem", S((1, 3), integers(0, 1, 2), spec=(ARRAY,))),
    *(("diagonal", S((2, 3), offset=offset, axis1=0, axis2=1)) for offset in (-3, -2, 2, 3, 5)),
    ("sliding_window", S((7, 2, 3), axis=0, size=3, step=2)),
    ("rfft", S((5, 4, 3), axis=1)), ("rfft", S((5, 4, 3), axis=0)), ("rfft_back", S((3, 4, 2), axis=0, size=5)),
    ("det", S((2, 3, 3))), ("pinv", S((2, 3, 5), rtol=1e-9)),
    ("take_along_axis", S((4, 5), integers(0, 4, 2, 5), axis=0)),
    ("put_along_add", S((2, 5), integers(0, 4, 2, 5), axis=0, shape=(4, 5))),
    *(("histogram", S((9,), lambda rng: np.sort(rng.normal(size=4)), *weight, density=density))
      for weight in ((), ((9,),)) for density in (True, False)),
]  # fmt: skip  # a table


def stated(prim: Primitive, args: Any, params: dict[str, Any]) -> list[Any]:
    found = prim.abstract(*args, **params)
    return [(tuple(one.shape), one.dtype) for one in (found if prim.multiple else (found,))]


def returned(prim: Primitive, args: Any, params: dict[str, Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        found = prim.compute(tuple(args), params)
    return [(np.shape(one), np.asarray(one).dtype) for one in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_the_forward_returns_what_the_entry_states(case: Case) -> None:
    for dtype in (np.float64, np.float32):
        args, params = case.draw(dtype=dtype)
        assert stated(case.prim, args, params) == returned(case.prim, args, params)


@pytest.mark.parametrize(
    ("name", "sample"),
    [*MORE, *((prim.name, sample) for prim, sample in CALLS)],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_other_calls_return_it_too(name: str, sample: S) -> None:
    prim = PRIMITIVES[name]
    args = sample.draw(np.random.default_rng(3))
    args = [args[0] + 0.5j * args[0]] if name == "view_as_real" else args
    assert stated(prim, args, sample.params) == returned(prim, args, sample.params)
