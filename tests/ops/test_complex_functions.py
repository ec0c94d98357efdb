"""Complex numbers in public functions: values and gradients are PyTorch's, or the function refuses them.

`complex_calls` contains a call of each function that accepts them, including every function that a file marks.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
import glassgrad.nn.functional as F
from glassgrad import errors
from glassgrad.ops import names
from glassgrad.ops.complex_input import takes_complex
from tests.ops.complex_calls import CALLS, IN_TORCH
from tests.ops.test_complex import REFUSED, numbers

ARRAYS = {
    "z": numbers(3, 3),
    "w": numbers(3, 3, seed=1),
    "v": numbers(3),
    "b": numbers(2, 3, 3),
    "c": numbers(2, 3, 3, seed=1),
}
CONSTANTS = {
    "i": np.array([2, 0, 1]),
    "ij": np.array([[2, 0, 1], [1, 2, 0], [0, 1, 2]]),
    "k": np.array([[True, True, False], [False, True, True], [True, False, True]]),
    "r": numbers(3, 3, seed=7).real,
}


def public() -> dict[str, Any]:
    found = {f"glassgrad.{name}": function for name, function in names.PUBLIC.items()}
    found |= {f"functional.{name}": getattr(F, name) for name in F.__all__}
    found |= {f"linalg.{name}": getattr(gg.linalg, name) for name in gg.linalg.__all__}
    return {name: function for name, function in found.items() if not isinstance(function, type)}


def results(call: str, library: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return what a call returns, and the gradients of a real number that depends on all of it."""
    leaves = {name: library.tensor(x, requires_grad=True) for name, x in ARRAYS.items()}
    constants = {name: library.tensor(x) for name, x in CONSTANTS.items()}
    hermitian = leaves["w"] @ leaves["w"].mH + 3 * library.eye(3, dtype=library.complex128)
    namespaces = {"m": library, "F": library.nn.functional, "linalg": library.linalg, "p": hermitian}
    found = eval(call, {**namespaces, **leaves, **constants})  # noqa: S307 - a text of the table
    outputs = list(found) if isinstance(found, list | tuple) else [found]
    losses = [
        (y * library.tensor(numbers(*y.shape, seed=number))).real.sum()
        for number, y in enumerate(outputs)
        if getattr(y, "requires_grad", False)
    ]
    if losses:
        sum(losses[1:], losses[0]).backward()
    slopes = {name: np.zeros_like(ARRAYS[name]) if leaf.grad is None else leaf.grad for name, leaf in leaves.items()}
    return [array(y) for y in outputs], {name: array(g) for name, g in slopes.items()}


def array(y: Any) -> Any:
    """Return the NumPy array of a result of either library; PyTorch's may be marked as conjugate."""
    y = y.detach() if hasattr(y, "detach") else y
    return np.asarray(y.resolve_conj() if hasattr(y, "resolve_conj") else y)


def compared(ours: str, theirs: str, library: Any = gg) -> None:
    values, gradients = results(ours, library)
    expected, slopes = results(theirs, pytest.importorskip("torch", reason="PyTorch is the oracle"))
    assert len(values) == len(expected)
    for x, y in zip(values, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == np.complex64 else 1e-10, atol=1e-11)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, slopes[name], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's, of what it will do otherwise some day
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_of_complex_numbers_are_pytorchs(name: str) -> None:
    compared(CALLS[name], IN_TORCH.get(name, CALLS[name]))


def taking() -> dict[str, Any]:
    """Return the functions that say they take complex numbers, but for single primitives: the registry has these."""
    functions = public() | {f"fft.{name}": getattr(gg.fft, name) for name in gg.fft.__all__}
    stated = {name: one for name, one in functions.items() if getattr(one, "takes_complex", False)}
    return {name: one for name, one in stated.items() if inspect.unwrap(one).__module__ != names.__name__}


def untested(functions: dict[str, Any]) -> list[str]:
    """Return the names without a call; of several names of one function one has it."""
    known = {name.removeprefix("glassgrad."): inspect.unwrap(one) for name, one in taking().items()}
    tested = {known[name] for name in CALLS}
    return [name for name, function in functions.items() if inspect.unwrap(function) not in tested]


def test_every_function_that_takes_complex_numbers_is_called_with_some() -> None:
    assert untested(taking()) == []
    assert set(IN_TORCH) <= set(CALLS)


def test_a_function_that_is_marked_and_wrong_is_found() -> None:
    @takes_complex
    def halves(x: Any) -> Any:
        return gg.real(x) / 2 + 0j

    @takes_complex
    def without_conjugate(x: Any) -> Any:
        return gg.conj(x).detach() * x

    assert untested({"halves": halves}) == ["halves"]
    library = SimpleNamespace(**{name: getattr(gg, name) for name in ("tensor", "eye", "complex128", "nn", "linalg")})
    library.halves, library.size = halves, without_conjugate
    with pytest.raises(AssertionError, match="Not equal"):
        compared("m.halves(z)", "z / 2", library)
    with pytest.raises(AssertionError, match="Not equal"):
        compared("m.size(z)", "z.conj() * z", library)


# How many arguments these need before they ask; a guard in front of the others asks whatever there is.
ASKS_BY_ITSELF = {"functional.batch_norm": 3, "functional.cross_entropy": 2, "functional.embedding": 2}


def test_what_asks_by_itself_refuses_on_its_usual_way_too() -> None:
    rows, labels = gg.tensor(numbers(4, 3)), gg.tensor([0, 1, 2, 0])
    mean, var = gg.zeros(3), gg.ones(3)
    with pytest.raises(errors.KindError, match=REFUSED):
        F.cross_entropy(rows, labels)
    with pytest.raises(errors.KindError, match=REFUSED):
        F.batch_norm(rows, mean, var, training=True)
    with pytest.raises(errors.KindError, match=REFUSED):
        F.batch_norm(rows, mean, var)


def test_every_public_function_states_what_it_does_or_refuses() -> None:
    z, silent = gg.tensor(numbers(2, 2)), []
    for name, function in public().items():
        stated = getattr(function, "takes_complex", None)
        if stated is None:
            silent.append(name)
        elif not stated:
            count = ASKS_BY_ITSELF.get(name, 1)
            for value in (z, numbers(2, 2), [z] if name not in ASKS_BY_ITSELF else z):
                with pytest.raises(errors.KindError, match=REFUSED):
                    function(*[value] * count)
    assert not silent, silent
