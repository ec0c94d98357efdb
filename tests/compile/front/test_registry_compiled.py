"""Every primitive of the registry, compiled by every emitter, gives eager mode's results on its samples."""

from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.ops.core import REGISTRY, Elementwise
from tests.ops.cases import cases, differentiable_positions

BACKENDS = ("numpy", "llvm")
RTOL = {np.float32: 1e-5, np.float64: 1e-12}

# Their results have a shape that depends on the numbers: they refuse to be traced, and a test elsewhere holds that.
DATA_DEPENDENT = {"nonzero", "unique", "unique_consecutive"}
CASES = [case for case in cases(differentiable=False) if case.prim.name not in DATA_DEPENDENT]
GROUPS = [CASES[start : start + 24] for start in range(0, len(CASES), 24)]


def flat(value):
    return [part for one in value for part in flat(one)] if isinstance(value, list | tuple) else [value]


def compare(found, wanted, rtol, label):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, label
    assert found.shape == wanted.shape, label
    scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1.0) if wanted.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale, err_msg=label)


def drawn(group, dtype):
    return [case.draw(3, dtype) for case in group]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].id}..{group[-1].id}")
def test_forward(group, dtype, backend):
    samples = drawn(group, dtype)

    def call_all(arguments):
        return [case.prim(*args, **params) for case, args, (_, params) in zip(group, arguments, samples, strict=True)]

    arguments = [args for args, _ in samples]
    with np.errstate(all="ignore"):
        wanted = call_all([[gg.from_numpy(np.asarray(x)) for x in args] for args in arguments])
        found = gg.compile(call_all, backend=backend)(arguments)
    for case, one, other in zip(group, found, wanted, strict=True):
        for part, eager in zip(flat(one), flat(other), strict=True):
            compare(part, eager.array, RTOL[dtype], case.id)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].id}..{group[-1].id}")
def test_backward(group, backend):
    """Gradients of a weighted sum of the results, by a backward pass that is part of the program."""
    group = [case for case in group if case.prim.differentiable]
    samples = drawn(group, np.float64)
    weights = np.random.default_rng(8)

    def gradients(arguments):
        found = []
        for case, args, (_, params) in zip(group, arguments, samples, strict=True):
            places = differentiable_positions(case.prim, [np.asarray(x) for x in samples[group.index(case)][0]])
            leaves = [gg.as_tensor(x).detach().requires_grad_() if at in places else x for at, x in enumerate(args)]
            results = case.carrying(case.prim(*leaves, **params))
            weighted = zip(results, scales[case.id], strict=True)
            total = sum((part * case_weights).sum() for part, case_weights in weighted)
            total.backward()
            found.append([leaves[at].grad for at in places])
        return found

    scales = {}
    for case, (args, params) in zip(group, samples, strict=True):
        with np.errstate(all="ignore"):
            results = case.carrying(case.prim(*[gg.from_numpy(np.asarray(x)) for x in args], **params))
        scales[case.id] = [weights.normal(size=part.shape) for part in results]
    arguments = [args for args, _ in samples]
    with np.errstate(all="ignore"):
        wanted = gradients(arguments)
        found = gg.compile(gradients, backend=backend)(arguments)
    for case, one, other in zip(group, found, wanted, strict=True):
        for part, eager in zip(one, other, strict=True):
            compare(part.array, eager.array, 1e-11, case.id)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges(dtype, backend):
    """Zeros of both signs, infinities and NaN are placed as in eager mode, for every op that lists edges."""
    edged = [prim for prim in REGISTRY.values() if isinstance(prim, Elementwise) and prim.edge]
    grids = [[np.array(part, dtype).reshape(-1) for part in np.meshgrid(*[prim.edge] * prim.arity)] for prim in edged]

    def call_all(arguments):
        return [prim(*args, **prim.sample_params) for prim, args in zip(edged, arguments, strict=True)]

    with np.errstate(all="ignore"):
        wanted = call_all([[gg.from_numpy(x) for x in args] for args in grids])
        found = gg.compile(call_all, backend=backend)(grids)
    for prim, args, one, other in zip(edged, grids, found, wanted, strict=True):
        label = f"{prim.name} of {[x.tolist() for x in args]}"
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other.array), err_msg=label)
        np.testing.assert_array_equal(np.isinf(one), np.isinf(other.array), err_msg=label)
        compare(one, other.array, RTOL[dtype], label)
