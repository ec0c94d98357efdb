"""Every primitive's derivative, only from its entry in the table.

The oracle is the central difference along random directions in float64, over a sweep of step sizes; a
wrong entry of the Jacobian shows in a random direction with probability one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.core import REGISTRY, Fused
from tests.ops.cases import Case, cases, differentiable_positions, is_float

ALL = list(cases())
STEPS = (1e-3, 1e-4, 1e-5, 1e-6)


def as_tuple(y: Any) -> tuple[Any, ...]:
    return y if isinstance(y, tuple) else (y,)


def value(case: Case, args: list[Any], params: dict[str, Any], cotangents: list[Any]) -> float:
    """Return <cotangents, f(args)>."""
    outputs = as_tuple(case.prim(*args, **params))
    return float(sum(np.sum(c * y) for c, y in zip(cotangents, outputs, strict=True) if c is not None))


def gradients(case: Case, args: list[Any], params: dict[str, Any], rng: Any) -> tuple[list[Any], list[Any], list[int]]:
    """Return random cotangents, the gradients they give, and the positions those belong to."""
    positions = differentiable_positions(case.prim, args)
    tensors = [
        gg.tensor(x, requires_grad=position in positions) if isinstance(x, np.ndarray) else x
        for position, x in enumerate(args)
    ]
    outputs = as_tuple(case.prim(*tensors, **params))
    cotangents = [rng.normal(size=y.shape).astype(y.dtype) if y.requires_grad else None for y in outputs]
    kept = [(y, c) for y, c in zip(outputs, cotangents, strict=True) if c is not None]
    assert kept, "no output requires a gradient"
    wanted = [tensors[position] for position in positions]
    found = gg.autograd.grad([y for y, _ in kept], wanted, [c for _, c in kept], allow_unused=True)
    return cotangents, [None if g is None else g.numpy() for g in found], positions


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_reverse_agrees_with_central_differences(case: Case) -> None:
    rng = np.random.default_rng(7)
    args, params = case.draw()
    cotangents, found, positions = gradients(case, args, params, rng)
    for position, g in zip(positions, found, strict=True):
        assert g is None or g.shape == args[position].shape
    for _ in range(3):
        directions = {position: rng.normal(size=args[position].shape) for position in positions}
        pairs = [(g, directions[at]) for at, g in zip(positions, found, strict=True) if g is not None]
        predicted = sum(float(np.sum(g * direction)) for g, direction in pairs)
        errors = []
        for step in STEPS:
            shifted = [
                [x + sign * step * directions[at] if at in directions else x for at, x in enumerate(args)]
                for sign in (1, -1)
            ]
            ahead, behind = (value(case, moved, params, cotangents) for moved in shifted)
            errors.append(abs((ahead - behind) / (2 * step) - predicted))
        assert min(errors) <= 1e-7 * case.prim.tolerance * (1 + abs(predicted)), (predicted, errors)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_float32_stays_float32(case: Case) -> None:
    args, params = case.draw(dtype=np.float32)
    if any(isinstance(entry, np.dtype) for entry in params.values()):
        pytest.skip("the parameters name a dtype")
    _, found, positions = gradients(case, args, params, np.random.default_rng(7))
    for y in as_tuple(case.prim(*args, **params)):
        assert y.dtype == np.float32 or y.dtype.kind != "f"
    assert all(g is None or g.dtype == args[at].dtype for at, g in zip(positions, found, strict=True))


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_memory_layout_does_not_matter_and_inputs_are_left_alone(case: Case) -> None:
    args, params = case.draw()
    expected = as_tuple(case.prim(*args, **params))
    before = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    for layout in (np.asfortranarray, negative_strides, read_only):
        moved = [layout(x) if is_float(x) and x.ndim else x for x in args]
        for y, y_expected in zip(as_tuple(case.prim(*moved, **params)), expected, strict=True):
            np.testing.assert_allclose(y, y_expected, rtol=1e-12, atol=1e-14)
        _, a, _ = gradients(case, args, params, np.random.default_rng(3))
        _, b, _ = gradients(case, moved, params, np.random.default_rng(3))
        for g, g_expected in zip(b, a, strict=True):
            assert (g is None) == (g_expected is None)
            if g is not None:
                np.testing.assert_allclose(g, g_expected, rtol=1e-11, atol=1e-13)
    for x, x_before in zip(args, before, strict=True):
        np.testing.assert_array_equal(x, x_before)


def negative_strides(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    turned = tuple(slice(None, None, -1) for _ in x.shape)
    return np.ascontiguousarray(x[turned])[turned]


def read_only(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copied = x.copy()
    copied.flags.writeable = False
    return copied


@pytest.mark.parametrize("case", [case for case in ALL if isinstance(case.prim, Fused)], ids=lambda case: case.id)
def test_fused_agrees_with_its_decomposition(case: Case) -> None:
    args, params = case.draw()
    cotangents, found, positions = gradients(case, args, params, np.random.default_rng(5))
    tensors = [gg.tensor(x, requires_grad=at in positions) for at, x in enumerate(args)]
    assert case.prim.decompose is not None
    outputs = as_tuple(case.prim.decompose(*tensors, **params))
    for y, direct in zip(outputs, as_tuple(case.prim(*args, **params)), strict=True):
        np.testing.assert_allclose(y.detach().numpy(), direct, rtol=1e-11, atol=1e-12)
    kept = [(y, c) for y, c in zip(outputs, cotangents, strict=True) if c is not None and y.requires_grad]
    wanted = [tensors[at] for at in positions]
    for g, expected in zip(
        gg.autograd.grad([y for y, _ in kept], wanted, [c for _, c in kept], allow_unused=True), found, strict=True
    ):
        assert (g is None) == (expected is None)
        if g is not None:
            np.testing.assert_allclose(g.numpy(), expected, rtol=1e-10, atol=1e-11)


# What a fused rule computes in any case, by op: the positions of arguments whose cotangents are a step to the others.
IN_ANY_CASE = {"batch_norm": range(1, 3), **dict.fromkeys(("lstm", "gru", "rnn"), range(1, 8))}


@pytest.mark.parametrize("case", [case for case in ALL if isinstance(case.prim, Fused)], ids=lambda case: case.id)
def test_a_fused_rule_computes_what_it_is_asked_for(case: Case) -> None:
    args, params = case.draw()
    positions = differentiable_positions(case.prim, args)

    def cotangents(wanted: list[int]) -> Any:
        y, residuals = case.prim.evaluate(*args, **params)
        g = [np.cos(np.arange(part.size, dtype=part.dtype)).reshape(part.shape) for part in as_tuple(y)]
        needs = tuple(at in wanted for at in range(len(args)))
        return case.prim.joint_vjp(g if case.prim.multiple else g[0], needs, residuals, *args, **params)

    together = cotangents(positions)
    assert len(together) == len(args)
    for position in positions:
        alone = cotangents([position])
        np.testing.assert_allclose(alone[position], together[position], rtol=1e-11, atol=1e-13)
        computed = {at for at, part in enumerate(alone) if part is not None}
        assert computed - {position} <= set(IN_ANY_CASE.get(case.prim.name, ()))


def test_every_differentiable_primitive_has_samples() -> None:
    without = sorted(prim.name for prim in REGISTRY.values() if prim.differentiable and not prim.samples)
    # The walks serve pick themselves; mirror's derivative is a convention, held against PyTorch's in test_linalg.py.
    assert without == ["mirror", "pick"]


def test_every_primitive_states_its_formula_and_derivative() -> None:
    silent = [prim.name for prim in REGISTRY.values() if prim.name != "pick" and not (prim.formula and prim.derivative)]
    assert silent == []
