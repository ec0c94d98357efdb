"""Every form of call of the functions that move numbers, against PyTorch: values, gradients, tangents, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops import shape
from glassgrad.ops.core import REGISTRY
from tests.ops.against_torch import compare, real, torch
from tests.ops.cases import cases

# Of (lib, x), where x is (2, 3, 4).
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "reshape": lambda lib, x: (x.reshape(6, 4), x.reshape((4, 6)), x.reshape([24]), x.reshape(1, -1), x[0].reshape(12)),
    "reshape of -1": lambda lib, x: (x.reshape(-1), x.reshape(3, -1), x.reshape((-1, 2)), x.reshape(2, -1, 2, 2)),
    "view": lambda lib, x: (x.view(6, 4), x.view((4, 6)), x.view(-1), x.view(3, -1), x.view(1, 24)),
    "one number": lambda lib, x: (
        x[0, 0, 0].reshape(()),
        x[0, 0, 0].view(1),
        x[0, 0, 0].reshape(-1),
        x[:1, :1, :1].reshape(()),
    ),
    "empty": lambda lib, x: (
        x[:0].reshape(0),
        x[:0].view(0, 5),
        x[:0].reshape(-1),
        x[:0].reshape(5, 0),
        x[:0].view(-1, 12),
    ),
    "permute": lambda lib, x: (
        x.permute(2, 0, 1),
        x.permute((1, 2, 0)),
        x.permute(-1, 0, -2),
        lib.permute(x, [0, 2, 1]),
    ),
    "transpose": lambda lib, x: (x.transpose(0, 2), x.transpose(-1, 1), lib.transpose(x, 1, 0), x.mT, x[0].T),
    "transpose of a number": lambda lib, x: (x[0, 0, 0].transpose(0, -1), x[0].t(), x[0, 0].t()),
    "movedim": lambda lib, x: (x.movedim(0, 2), x.movedim(-1, 0), x.movedim((0, 1), (2, 0)), x.movedim([2, 0], [0, 1])),
    "squeeze": lambda lib, x: (x[:1].squeeze(), x[:1, :, :1].squeeze(0), x[:1, :, :1].squeeze((0, 2)), x.squeeze(1)),
    "squeeze some": lambda lib, x: (x[:1, :1].squeeze(-2), x[:1].squeeze((0, 1)), x[:1, :1, :1].squeeze()),
    "unsqueeze": lambda lib, x: (
        x.unsqueeze(0),
        x.unsqueeze(3),
        x.unsqueeze(-1),
        x.unsqueeze(-2),
        x[0, 0, 0].unsqueeze(0),
    ),
    "flatten": lambda lib, x: (
        x.flatten(),
        x.flatten(1),
        x.flatten(0, 1),
        x.flatten(1, -1),
        x.flatten(1, 1),
        x.flatten(-2),
    ),
    "flatten a number": lambda lib, x: (x[0, 0, 0].flatten(), x[0, 0].flatten()),
    "unflatten": lambda lib, x: (
        x.unflatten(2, (2, 2)),
        x.unflatten(-1, (2, -1)),
        x.unflatten(0, (2, 1)),
        x.unflatten(1, (3,)),
    ),
    "unflatten by -1": lambda lib, x: (x.unflatten(0, (-1,)), x.unflatten(1, [1, -1, 3]), x[:0].unflatten(0, (2, 0))),
    "expand": lambda lib, x: (
        x[:1].expand(5, 3, 4),
        x[:1].expand(-1, -1, 4),
        x.expand(2, 2, 3, 4),
        x.expand((1, -1, 3, -1)),
    ),
    "expand a number": lambda lib, x: (
        x[0, 0, 0].expand(3),
        x[0, 0, 0].expand(2, 0),
        lib.broadcast_to(x[0, 0], (2, 4)),
    ),
    "flip": lambda lib, x: (x.flip(0), x.flip(0, 2), x.flip((1, 2)), lib.flip(x, [-1]), lib.flip(x, (0, 1, 2))),
    "roll": lambda lib, x: (x.roll(1, 0), x.roll(-1, 2), x.roll(5, 1), x.roll((1, -1), (0, 2)), x.roll((2,), (-1,))),
    "roll flat": lambda lib, x: (x.roll(5), x.roll(-7), x.roll((3,)), x[0, 0].roll(1), x.roll(1, ()), x[:0].roll(1, 0)),
    "triangles": lambda lib, x: (
        x.tril(),
        x.triu(),
        x[0].tril(),
        x[0].triu(),
        x[0].tril(1),
        x[0].triu(-1),
        x[1].tril(-2),
    ),
    "more triangles": lambda lib, x: (
        x.tril(2),
        x.triu(diagonal=1),
        x[0].triu(2),
        lib.tril(x[0], diagonal=-1),
        x[:0].tril(),
    ),
    "cat": lambda lib, x: (lib.cat([x, x[:1]]), lib.cat((x, x), 1), lib.cat([x, x[:, :, :1], x], -1), lib.cat([x])),
    "cat of nothing": lambda lib, x: (
        lib.cat([lib.zeros(0, dtype=x.dtype), x]),
        lib.cat([x, lib.zeros(0, dtype=x.dtype)], 1),
        lib.cat([x, lib.zeros(0, dtype=x.dtype), x], -1),
        lib.cat([lib.zeros(0, dtype=x.dtype), x[0, 0]]),
    ),
    "stack": lambda lib, x: (lib.stack([x, x]), lib.stack((x, 2 * x), 1), lib.stack([x, x], 3), lib.stack([x, -x], -1)),
    "stack one": lambda lib, x: (lib.stack([x]), lib.stack([x[0, 0, 0], x[0, 0, 1]]), lib.stack([x[0], x[1]], -2)),
    "copies": lambda lib, x: (x.clone(), lib.clone(x), x.contiguous()),
    "casts": lambda lib, x: (x.to(lib.float64), x.double()),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str) -> None:
    compare(lambda x: CALLS[name](gg, x), lambda x: CALLS[name](torch, x), real(2, 3, 4), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", CALLS)
def test_tangents_are_moved_as_values_are(name: str) -> None:
    """All of them are linear: the tangent of the result is the result for the tangent."""
    x, t = gg.tensor(real(2, 3, 4)), gg.tensor(real(2, 3, 4, seed=1))
    _, tangents = gg.func.jvp(lambda x: CALLS[name](gg, x), (x,), (t,))
    for found, expected in zip(tangents, CALLS[name](gg, t), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy(), strict=True)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "casts"])
def test_complex_numbers_are_moved_as_their_parts_are(name: str) -> None:
    real_part, imaginary = gg.tensor(real(2, 3, 4)), gg.tensor(real(2, 3, 4, seed=1))
    parts = (CALLS[name](gg, part) for part in (real_part, imaginary))
    for found, first, second in zip(CALLS[name](gg, gg.complex(real_part, imaginary)), *parts, strict=True):
        np.testing.assert_array_equal(found.numpy(), first.numpy() + 1j * second.numpy(), strict=True)


def test_the_tangent_of_a_border_is_zero() -> None:
    x, t = gg.tensor(real(2, 3)), gg.tensor(real(2, 3, seed=1))
    _, tangent = gg.func.jvp(lambda x: gg.nn.functional.pad(x, (1, 2), value=3.0), (x,), (t,))
    np.testing.assert_array_equal(tangent.numpy(), np.pad(t.numpy(), ((0, 0), (1, 2))))


# How entries are called in their file, where not by their name.
OTHER_NAMES = {"concat": "concatenate", "permute_dims": "permute"}
# Which dtype is read as which: of the bits of (2, 4) float64.
BITS = ("float64", "float32", "int16", "uint8", "int64", "complex128", "complex64")


@pytest.mark.parametrize("wanted", BITS)
@pytest.mark.parametrize("given", ["float64", "uint8", "float32"])
def test_bits_read_as_another_dtype(given: str, wanted: str) -> None:
    for sizes in ((2, -1), (-1,), (1, 2, 1, -1)):
        numbers = np.frombuffer(real(2, 4).tobytes(), given).reshape(sizes).copy()
        check_bits(numbers, wanted)


def check_bits(numbers: Any, wanted: str) -> None:
    found, expected = gg.tensor(numbers).view(getattr(gg, wanted)), torch.tensor(numbers).view(getattr(torch, wanted))
    assert str(found.dtype) == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(found.numpy(), expected.numpy(), strict=True)
    entry = REGISTRY["view_bits"]
    predicted = entry.abstract(numbers, dtype=np.dtype(wanted))
    assert (predicted.shape, predicted.dtype) == (found.shape, found.dtype)


@pytest.mark.parametrize("wanted", ["float32", "float64", "complex64", "int32", "bool"])
@pytest.mark.parametrize("given", ["float32", "complex128", "int16"])
def test_casts(given: str, wanted: str) -> None:
    x = (10 * real(2, 3)).astype(given) + (1j if given == "complex128" else 0)
    x = x.astype(given)
    if given == "complex128" and wanted in {"float32", "float64"}:
        found, expected = REGISTRY["astype"](x, dtype=np.dtype(wanted)), x.real.astype(wanted)
    elif given == "complex128" and wanted == "int32":
        pytest.skip("it warns of the imaginary part")
    else:
        found, expected = gg.tensor(x).to(getattr(gg, wanted)).numpy(), x.astype(wanted)
    np.testing.assert_array_equal(found, expected, strict=True)


def test_shapes_are_known_before_the_numbers() -> None:
    """The shape rule of each entry says what comes out, of the samples and of calls without one."""
    moving = [
        prim for prim in REGISTRY.values() if getattr(shape, f"{OTHER_NAMES.get(prim.name, prim.name)}_p", 0) is prim
    ]
    assert len(moving) == 13
    calls = [(case.prim, *case.draw()) for case in cases() if case.prim in moving]
    x, y = real(2, 3, 4), real(2, 5, 4)
    calls += [(REGISTRY["concat"], [x], {"axis": 2}), (REGISTRY["concat"], [x, y, x], {"axis": 1})]
    calls += [(REGISTRY["pad"], [x], {"widths": ((1, 2), (0, 3), (4, 0)), "value": 0.0})]
    for prim, args, params in calls:
        found, known = prim(*args, **params), prim.abstract(*args, **params)
        assert (known.shape, known.dtype) == (found.shape, found.dtype), prim
    for prim in moving:
        assert prim.takes_complex, "nothing is computed"


def test_one_size_left_open() -> None:
    assert shape._full_shape((-1, 4), 24) == (6, 4)
    assert shape._full_shape((2, 3, -1), 24) == (2, 3, 4)
    assert shape._full_shape((2, 3), 0) == (2, 3)


def test_nothing_joined_to_nothing() -> None:
    assert gg.cat([gg.zeros(0), gg.zeros(0)]).shape == (0,)
    assert gg.cat([gg.zeros(0)]).shape == (0,)


def test_forms_of_numpy() -> None:
    x = real(2, 3, 4)
    np.testing.assert_array_equal(gg.transpose(gg.tensor(x), (2, 0, 1)).numpy(), x.transpose(2, 0, 1), strict=True)
    np.testing.assert_array_equal(gg.transpose(gg.tensor(x)).numpy(), x.transpose(), strict=True)
    np.testing.assert_array_equal(gg.flip(gg.tensor(x), axis=1).numpy(), np.flip(x, 1), strict=True)
    np.testing.assert_array_equal(gg.flip(gg.tensor(x), axis=None).numpy(), np.flip(x), strict=True)
    np.testing.assert_array_equal(gg.flip(gg.tensor(x)).numpy(), np.flip(x), strict=True)


def test_a_number_is_cast_as_an_array() -> None:
    found = REGISTRY["astype"](2.5, dtype=np.dtype(np.float32))
    assert (found.dtype, float(found)) == (np.float32, 2.5)


def test_what_needs_no_cast_is_the_same_tensor() -> None:
    x = gg.tensor([1.0])
    assert gg.ops.shape.astype(x, "float32") is x
    assert x.view(gg.float32) is x
    array = np.ones(3)
    assert np.shares_memory(REGISTRY["astype"](array, dtype=array.dtype), array)


# --- how they are refused -------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "two -1": (lambda lib, x: x.reshape(-1, -1), "reshape: shape=(-1, -1) given, expected sizes of 24 elements"),
    "-2": (lambda lib, x: x.reshape(-2, 12), "sizes of 24 elements, one of which may be -1"),
    "-2 and -1": (lambda lib, x: x.view(-2, -1), "sizes of 24 elements, one of which may be -1"),
    "no quotient": (lambda lib, x: x.reshape(-1, 5), "sizes of 24 elements, one of which may be -1"),
    "-1 beside 0": (lambda lib, x: x[:0].reshape(-1, 0), "sizes of 0 elements, one of which may be -1"),
    "too many bits": (
        lambda lib, x: x[..., :3].float().view(lib.float64),
        "one that the last dimension of (2, 3, 3) divides into",
    ),
    "bits of a number": (lambda lib, x: x[0, 0, 0].view(lib.float32), "one that the last dimension of () divides into"),
    "permute": (lambda lib, x: x.permute(0, 1), "permute: dims=(0, 1) given, expected an order of 3 dimensions"),
    "movedim": (lambda lib, x: x.movedim((0, 1), (1,)), "2 dimensions, one for each of source"),
    "flatten": (lambda lib, x: x.flatten(2, 1), "flatten: end_dim=1 given, expected none before start_dim=2"),
    "unflatten": (
        lambda lib, x: x.unflatten(1, (2, 2)),
        "unflatten: sizes=(2, 2) given, expected sizes whose product is 3",
    ),
    "unflatten into nothing": (lambda lib, x: x.unflatten(1, ()), "sizes whose product is 3"),
    "unflatten a number": (lambda lib, x: x[0, 0, 0].unflatten(0, (1,)), "Expected: at least one."),
    "unflatten by -1": (lambda lib, x: x.unflatten(1, (2, -1)), "sizes of 3 elements, one of which may be -1"),
    "expand": (
        lambda lib, x: x.expand(-1, 2, 3, 4),
        "expand: sizes=(-1, 2, 3, 4) given, expected -1 only for dimensions that there are",
    ),
    "roll": (
        lambda lib, x: x.roll((1, 2), (0,)),
        "roll: shifts=(1, 2) given, expected 1 of them, one for each of dims=(0,)",
    ),
    "roll over nothing": (lambda lib, x: x.roll((1, 2), ()), "0 of them, one for each of dims=()"),
    "tril": (lambda lib, x: x[0, 0].tril(), "tril: x='an array of shape (4,)' given, expected at least two dimensions"),
    "triu": (lambda lib, x: x[0, 0].triu(), "triu: x='an array of shape (4,)' given, expected at least two dimensions"),
    "cat": (lambda lib, x: lib.cat([]), "cat: tensors=[] given, expected at least one"),
    "stack": (lambda lib, x: lib.stack([]), "at least one"),
    "stack of two shapes": (lambda lib, x: lib.stack([x, x[:1]]), ""),
    "dim": (lambda lib, x: x.unsqueeze(4), "4"),
    "stack below": (lambda lib, x: lib.stack([x, x], -5), "-5"),
    "dim below": (lambda lib, x: x.unsqueeze(-5), "-5"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, said = REFUSED[name]
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        call(torch, torch.tensor(real(2, 3, 4)))
    with pytest.raises(errors.GlassgradError) as refusal:
        call(gg, gg.tensor(real(2, 3, 4)))
    assert all(part in str(refusal.value) for part in said.split(" given, expected ")), refusal.value


def test_a_memory_format_that_there_is_not() -> None:
    x = gg.ones(2)
    assert x.clone(memory_format="contiguous").tolist() == x.clone(memory_format="preserve").tolist() == [1.0, 1.0]
    with pytest.raises(errors.GlassgradError, match="'contiguous' or 'preserve'"):
        x.clone(memory_format="channels_last")
