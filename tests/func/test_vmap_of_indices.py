"""Indices and products under vmap: every kind of index and of factor, with each argument batched or shared."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import func
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.places import split_index

getitem, put_add, at_set = (REGISTRY[name] for name in ("getitem", "put_add", "at_set"))

RNG = np.random.default_rng(8)
EXAMPLES, SHAPE = 3, (3, 4, 5)
ARRAYS = RNG.normal(size=(EXAMPLES, *SHAPE))
# No place occurs twice, so that it does not matter which value is written last; negative ones count from the end.
VECTORS = np.array([[0, 2], [1, -3], [-1, 0]])
MATRICES = np.array([[[0], [1]], [[2], [0]], [[-1], [1]]])

# `V` and `M` stand for index arrays of one and two dimensions.
INDICES = (
    "...,0", "...,V", "V", "M", ":,V", ":,:,V", "V,V", "M,V", "V,:,V", "M,:,V", "0,:,V", "V,:,1", "V,1", ":,V,2",
    "1,...,V", "None,V,...,None", "V,None,1", "...,V,1:3", ":,None,V", "1:,V", "::2,...,V", "2,V,::-1", "None,...,1",
    "V,...", ":2,M,M", "M,1:,M", "None,V,:,V", "1", "::2,1:", "...",
)  # fmt: skip  # a table


def split(text: str) -> tuple[Any, list[str]]:
    """Return the static part of an index and the letters of its arrays."""
    parts: list[Any] = []
    for word in text.split(","):
        given = {"...": Ellipsis, "None": None, "V": VECTORS[0], "M": MATRICES[0]}
        if word in given:
            parts.append(given[word])
        elif ":" in word:
            parts.append(slice(*(int(number) if number else None for number in word.split(":"))))
        else:
            parts.append(int(word))
    return split_index(tuple(parts), SHAPE)[0], [word for word in text.split(",") if word in "VM"]


def mapped(call: Any, given: list[Any], batched: tuple[bool, ...]) -> Any:
    """Return the result of vmap and those of a loop, of arguments with all examples along axis 0."""
    xs = [x if mine else x[0] for x, mine in zip(given, batched, strict=True)]
    found = func.vmap(call, tuple(0 if mine else None for mine in batched))(*map(gg.tensor, xs)).numpy()
    pairs = list(zip(xs, batched, strict=True))
    return found, np.stack([call(*(x[n] if mine else x for x, mine in pairs)) for n in range(EXAMPLES)])


def flags(count: int) -> Any:
    return [one for one in itertools.product((False, True), repeat=count) if any(one)]


def arrays_of(letters: list[str]) -> list[Any]:
    # The second array of an index is another one, or rows would be chosen along a diagonal.
    return [{"V": VECTORS, "M": MATRICES}[letter][:: (-1) ** at] for at, letter in enumerate(letters)]


@pytest.mark.parametrize("text", INDICES)
def test_what_an_index_selects_and_where_its_cotangent_goes(text: str) -> None:
    spec, letters = split(text)
    for batched in flags(1 + len(letters)):
        arrays = arrays_of(letters)
        np.testing.assert_array_equal(
            *mapped(lambda x, *rest: getitem(x, *rest, spec=spec), [ARRAYS, *arrays], batched)
        )
        part = getitem(ARRAYS[0], *(array[0] for array in arrays), spec=spec)
        g = RNG.normal(size=(EXAMPLES, *part.shape))
        np.testing.assert_allclose(
            *mapped(lambda g, *rest: put_add(g, *rest, spec=spec, shape=SHAPE), [g, *arrays], batched), rtol=1e-12
        )


@pytest.mark.parametrize("text", INDICES)
def test_what_is_written_at_an_index(text: str) -> None:
    spec, letters = split(text)
    arrays = arrays_of(letters)
    shape = getitem(ARRAYS[0], *(array[0] for array in arrays), spec=spec).shape
    for batched in flags(2 + len(letters)):
        for value in {shape, shape[1:], (1, *shape[1:]), ()}:
            values = RNG.normal(size=(EXAMPLES, *value))
            np.testing.assert_array_equal(
                *mapped(lambda x, v, *rest: at_set(x, v, *rest, spec=spec), [ARRAYS, values, *arrays], batched)
            )
    found = func.vmap(lambda x: at_set(x, 7.0, *(array[0] for array in arrays), spec=spec))(gg.tensor(ARRAYS))
    for number in range(EXAMPLES):
        expected = at_set(ARRAYS[number], 7.0, *(array[0] for array in arrays), spec=spec)
        np.testing.assert_array_equal(found[number].numpy(), expected)


@pytest.mark.parametrize("shape", [(3, 2, 5), (2, 5), (2, 1), (5,), ()])
@pytest.mark.parametrize("batched", flags(3), ids=str)
def test_what_is_put_along_an_axis(shape: tuple[int, ...], batched: tuple[bool, ...]) -> None:
    places = np.argsort(RNG.normal(size=(EXAMPLES, *SHAPE)), axis=2)[:, :, :2]
    values = RNG.normal(size=(EXAMPLES, *shape))
    put = REGISTRY["put_along_axis"]
    np.testing.assert_array_equal(*mapped(lambda x, v, at: put(x, v, at, axis=1), [ARRAYS, values, places], batched))


LEFT, RIGHT = ((4,), (3, 4), (2, 3, 4)), ((4,), (4, 5), (2, 4, 5))


@pytest.mark.parametrize(("left", "right"), list(itertools.product(LEFT, RIGHT)), ids=str)
def test_products_of_vectors_matrices_and_stacks(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = (RNG.normal(size=(EXAMPLES, *shape)) for shape in (left, right))
    for batched in flags(2):
        np.testing.assert_allclose(*mapped(REGISTRY["matmul"], [a, b], batched), rtol=1e-12, atol=1e-14)
