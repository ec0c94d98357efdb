"""Fused ops and their unfused forms, against the same formulas in PyTorch's plain ops: value and every gradient.

The arguments select all code paths of a fused op: masks of every kind, rows without an example or a class, numbers at
the ends of their range, with and without native code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.ops import fused, fused_attention, fused_norm
from glassgrad.ops.core import REGISTRY
from glassgrad.ops.kernels import native, parts, sums
from tests.ops.against_torch import real, torch


def evaluations(prim: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a fused op, and the same in other ops."""
    return prim, prim.decompose


def compare(name: str, theirs: Callable[..., Any], *args: Any, rtol: float = 1e-9, **params: Any) -> None:
    """Compare values and the gradients of all arrays of floats, of the op and of what it is made of."""
    floats = [isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in args]
    given = [torch.tensor(x, requires_grad=mine) for x, mine in zip(args, floats, strict=True)]
    expected = theirs(*given)
    weights = np.cos(np.arange(math.prod(expected.shape))).reshape(tuple(expected.shape))
    wanted = torch.autograd.grad(
        expected, [x for x in given if x.requires_grad], torch.tensor(weights), allow_unused=True
    )
    for way in evaluations(REGISTRY[name]):
        tensors = [gg.tensor(x, requires_grad=mine) for x, mine in zip(args, floats, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):  # the mean of nothing
            y = way(*tensors, **params)
            y = y[0] if isinstance(y, tuple) else y
            wished = [x for x in tensors if x.requires_grad]
            found = gg.autograd.grad(y, wished, gg.tensor(weights), allow_unused=True)
        np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-12, strict=True)
        for one, gradient in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one.numpy(), gradient.numpy(), rtol=rtol, atol=1e-12, strict=True)


# --- attention ------------------------------------------------------------------------------------

RANKS = {
    "matrices": ((4, 3), (5, 3), (5, 2)),
    "stacks": ((2, 4, 3), (2, 5, 3), (2, 5, 2)),
    "heads": ((2, 2, 4, 3), (2, 2, 5, 3), (2, 2, 5, 2)),
}
MASKS = {"none": None, "flags": (4, 5), "numbers": (4, 5), "numbers of a stack": (3, 1, 1, 4, 5)}


def attention(scale: float, causal: bool, masked: bool, dropped: bool) -> Callable[..., Any]:
    def formula(q: Any, k: Any, v: Any, *extra: Any) -> Any:
        scores, rest = q @ k.transpose(-1, -2) * scale, list(extra)
        if masked:
            mask = rest.pop(0)
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
        if causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -math.inf)
        dead = scores.max(-1, keepdim=True).values == -math.inf
        weights = torch.softmax(scores.masked_fill(dead, 0.0), -1).masked_fill(dead, 0.0)
        return (weights * rest[0] if dropped else weights) @ v

    return formula


@pytest.mark.parametrize("loud", [1.0, 2000.0], ids=["near 0", "far from 0"])
@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("mask", MASKS)
def test_attention_with_every_mask(mask: str, rank: str, loud: float) -> None:
    """One row is hidden whole; scores of any size; fewer dimensions than the mask has."""
    arrays = [real(*shape, seed=at) for at, shape in enumerate(RANKS[rank])]
    arrays[0] = arrays[0] * loud
    extra: list[Any] = []
    if MASKS[mask] is not None:
        extra = [real(*MASKS[mask], seed=7)]
        if mask == "flags":
            extra = [extra[0] > -0.3]
            extra[0][2] = False
        else:
            extra[0][..., 2, :] = -math.inf
    for causal, dropped in itertools.product((False, True), repeat=2):
        shape = np.broadcast_shapes((*arrays[0].shape[:-2], 4, 5), *(one.shape for one in extra))
        factor = [(real(*shape, seed=9) > 0) * 2.0] if dropped else []
        options = {"scale": 0.7, "causal": causal, "masked": bool(extra), "dropped": dropped}
        args = (*arrays, *extra, *factor)
        compare("scaled_dot_product_attention", attention(**options), *args, **options, rtol=1e-8)


@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 1, 5), (2, 1, 4, 1)])
def test_a_mask_for_more_than_there_are_queries(shape: tuple[int, ...]) -> None:
    arrays = [real(1, *one, seed=at) for at, one in enumerate(((4, 3), (5, 3), (5, 2)))]
    options = {"scale": 0.7, "causal": False, "masked": True, "dropped": False}
    for mask in (real(*shape, seed=7), real(*shape, seed=7) > -0.3):
        compare("scaled_dot_product_attention", attention(**options), *arrays, mask, **options)


# --- normalisations and losses --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (1, 1, 1), (1, 2, 1), (4, 1), (3, 2, 4)])
def test_batch_norm_of_few_examples(shape: tuple[int, ...]) -> None:
    c = shape[1]

    def formula(x: Any, w: Any, b: Any) -> Any:
        axes = [0, *range(2, len(shape))]
        centred = x - x.mean(axes, keepdim=True)
        beside = (1, c, *(1,) * (len(shape) - 2))
        normal = centred / torch.sqrt((centred**2).mean(axes, keepdim=True) + 1e-3)
        return normal * w.reshape(beside) + b.reshape(beside)

    compare("batch_norm", formula, real(*shape), real(c, seed=1), real(c, seed=2), eps=1e-3)
    x = real(*shape)
    for _, mean, var in (way(x, real(c), real(c), eps=1e-3) for way in evaluations(REGISTRY["batch_norm"])):
        axes = (0, *range(2, len(shape)))
        np.testing.assert_allclose(mean, x.mean(axes), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(var, x.var(axes), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignored", [-100, 0, 2, 3])
@pytest.mark.parametrize("classes", [1, 3])
def test_cross_entropy_of_rows_that_are_ignored(classes: int, ignored: int, reduction: str) -> None:
    target = np.arange(5) % classes
    if ignored not in range(classes):
        target[1:3] = ignored

    def formula(x: Any, labels: Any) -> Any:
        return torch.nn.functional.cross_entropy(x, labels, reduction=reduction, ignore_index=ignored)

    compare("cross_entropy", formula, real(5, classes), target, reduction=reduction, ignore_index=ignored)


def test_cross_entropy_made_of_other_ops_refuses_labels_that_are_no_integers() -> None:
    with pytest.raises(errors.KindError, match="class indices as integers"):
        gg.func.vmap(gg.nn.functional.cross_entropy)(gg.ones(2, 4, 3), gg.ones(2, 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binary_cross_entropy_at_the_ends_of_its_range(dtype: Any) -> None:
    """Where a logarithm stops, the slope of what the loss is made of is that of the fused rule."""
    tiny = np.finfo(dtype).tiny
    x, t = (np.array(one, dtype).ravel() for one in np.meshgrid([0, tiny, 2 * tiny, 1e-30, 0.5, 1], [0, 0.3, 1]))
    loss = REGISTRY["binary_cross_entropy"]
    found = []
    for way in evaluations(loss):
        given, target = gg.tensor(x, requires_grad=True), gg.tensor(t)
        y = way(given, target, reduction="none")
        found.append((y.detach().numpy(), gg.autograd.grad(y.sum(), given)[0].numpy()))
    with np.errstate(divide="ignore"):
        logs = [np.maximum(np.log(one.astype(np.float64)), -100) for one in (x, 1 - x)]
    exact = -t.astype(np.float64) * logs[0] - (1 - t.astype(np.float64)) * logs[1]
    slope = (x.astype(np.float64) - t) / np.maximum((1 - x.astype(np.float64)) * x, 1e-12)
    for y, _ in found:
        np.testing.assert_allclose(y, exact, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[0][1], slope, rtol=1e-5, atol=1e-6)
    stopped = (x == 0) & (t > 0)
    np.testing.assert_allclose(found[1][1][stopped], slope[stopped], rtol=1e-5)


@pytest.mark.parametrize("shape", [(3, 4), (600, 3), (3000, 40), (2, 513), (2500, 2)])
def test_sums_of_rows_and_columns_of_every_length(shape: tuple[int, ...]) -> None:
    for dtype, rtol in ((np.float32, 1e-5), (np.float64, 1e-12)):
        x = np.abs(real(*shape)).astype(dtype)
        for found, axis in ((sums.sum_rows(x), 0), (sums.sum_columns(x), 1)):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, x.astype(np.float64).sum(axis), rtol=rtol)


HALF: dict[str, tuple[tuple[tuple[int, ...], ...], dict[str, Any]]] = {
    "batch_norm": (((3000, 2), (2,), (2,)), {"eps": 1e-5}),
    "layer_norm": (((3000, 2), (2,), (2,)), {"dims": 1, "eps": 1e-5}),
    "rms_norm": (((3000, 2), (2,)), {"dims": 1, "eps": 1e-5}),
}


@pytest.mark.parametrize("native_sums", [True, False])
@pytest.mark.parametrize("rows", [3, 2048, 2049])
def test_a_share_of_the_sum_of_rows(rows: int, native_sums: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By each of the ways to it: a kernel, and a product with numbers that are the share."""
    x = real(rows, 300_000 // rows)
    if not native_sums:
        monkeypatch.setattr(sums, "native_rows", lambda x: None)
    for share in (1.0, 0.25):
        np.testing.assert_allclose(sums.sum_rows(x, share), x.sum(0) * share, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rows", [0, 1, 512, 513])
def test_cross_entropy_of_few_and_many_rows(rows: int, reduction: str) -> None:
    logits, labels = real(rows, 5), np.arange(rows) % 5
    expected = torch.nn.functional.cross_entropy(torch.tensor(logits), torch.tensor(labels), reduction=reduction)
    found = gg.nn.functional.cross_entropy(gg.tensor(logits), gg.tensor(labels), reduction=reduction)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-13)


@pytest.mark.parametrize("name", HALF)
def test_cotangents_of_many_rows_in_half_precision_are_rounded_once(name: str) -> None:
    shapes, params = HALF[name]
    args = [(real(*shape, seed=at) + 1).astype(np.float16) for at, shape in enumerate(shapes)]
    prim, g = REGISTRY[name], np.full(shapes[0], 0.01, np.float16)

    def cotangents(dtype: Any, needs: tuple[bool, ...]) -> Any:
        wide = [x.astype(dtype) for x in args]
        y, residuals = prim.evaluate(*wide, **params)
        assert all(one.dtype == dtype for one in (y if isinstance(y, tuple) else (y,)))
        return prim.joint_vjp(g.astype(dtype), needs, residuals, *wide, **params)

    together = (True,) * len(args)
    truth = cotangents(np.float64, together)
    for position, exact in enumerate(truth):
        for needs in (together, tuple(at == position for at in range(len(args)))):
            found = cotangents(np.float16, needs)[position]
            assert found.dtype == np.float16
            np.testing.assert_allclose(found, exact, rtol=1e-3, atol=2e-3)


def test_large_products_compute_what_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "SUMMED_FROM", 0)
    x, w, b, g = real(4, 3), real(2, 3), real(2), real(4, 2)
    expected = (g @ w, g.T @ x, g.sum(0))
    for needs in itertools.product((False, True), repeat=3):
        found = REGISTRY["linear"].joint_vjp(g, needs, None, x, w, b)
        assert [one is not None for one in found] == list(needs)
        for one, exact in zip(found, expected, strict=True):
            if one is not None:
                np.testing.assert_allclose(one, exact, rtol=1e-12)


# --- native code that is there, and that is not ---------------------------------------------------


def asked_natively(monkeypatch: pytest.MonkeyPatch, accepted: bool) -> list[tuple[str, Sequence[Any], dict[str, Any]]]:
    """Let native code fill its results with numbers of their own, or refuse; return what it is asked for."""
    asked: list[Any] = []

    def in_parts(
        formula: Any, cut: Any, whole: Any, results: Sequence[Any], sums: Sequence[Any] = (), **params: Any
    ) -> bool:
        asked.append((formula.__name__.strip("_"), [one.shape for one in (*results, *sums)], params))
        for number, one in enumerate((*results, *sums)):
            one[...] = number + 2 if accepted else math.nan
        return accepted

    for module in (fused_norm, fused_attention):
        monkeypatch.setattr(module, "in_parts", in_parts)
    monkeypatch.setattr(parts, "FROM", 1)
    return asked


NATIVE: dict[str, tuple[Any, dict[str, Any], list[Any]]] = {
    "layer_norm": (((6, 4), (4,), (4,)), {"dims": 1, "eps": 1e-5}, [(6, 4), (6, 4), (6, 1)]),
    "rms_norm": (((2, 3, 4), (4,)), {"dims": 1, "eps": 1e-5}, [(6, 4), (6, 4), (6, 1)]),
    "scaled_dot_product_attention": (
        ((2, 4, 3), (2, 5, 3), (2, 5, 2)),
        {"scale": 0.5, "causal": True, "masked": False, "dropped": False},
        [(2, 4, 5)],
    ),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_code_that_refuses_leaves_the_work_to_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, params, _ = NATIVE[name]
    args = [real(*shape, seed=at) for at, shape in enumerate(shapes)]

    def computed() -> list[Any]:
        y, residuals = REGISTRY[name].evaluate(*args, **params)
        return [y, *REGISTRY[name].joint_vjp(np.cos(y), (True,) * len(args), residuals, *args, **params)]

    monkeypatch.setattr(native.kernels, "off", True)
    expected = computed()
    monkeypatch.setattr(native.kernels, "off", False)
    asked = asked_natively(monkeypatch, accepted=False)
    for found, one in zip(computed(), expected, strict=True):
        np.testing.assert_array_equal(found, one)
    assert len(asked) == 2


@pytest.mark.parametrize("name", NATIVE)
def test_what_native_code_has_computed_is_the_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, params, results = NATIVE[name]
    args = [real(*shape, seed=at) for at, shape in enumerate(shapes)]
    asked = asked_natively(monkeypatch, accepted=True)
    y, residuals = REGISTRY[name].evaluate(*args, **params)
    found = REGISTRY[name].joint_vjp(np.cos(y), (True,) * len(args), residuals, *args, **params)
    assert asked[0][1] == results
    assert asked[0][2] == ({"scale": 0.5} if "scale" in params else params)
    if name == "scaled_dot_product_attention":
        np.testing.assert_array_equal(residuals, np.full((2, 4, 5), 2.0))
        np.testing.assert_allclose(y, 2 * args[2].sum(1, keepdims=True).repeat(4, 1))
        np.testing.assert_allclose(found[0], 2 * args[1].sum(1, keepdims=True).repeat(4, 1))
        np.testing.assert_allclose(found[1], 2 * args[0].sum(1, keepdims=True).repeat(5, 1))
    else:
        assert (y == 2).all()
        assert [(one == 3 + at).all() for at, one in enumerate(residuals)] == [True, True]
        assert [(one == 2 + at).all() for at, one in enumerate(found)] == [True] * len(args)
        assert [one.shape for one in found] == [one.shape for one in args]


def test_dropout_of_weights_from_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_natively(monkeypatch, accepted=True)
    shapes, params, _ = NATIVE["scaled_dot_product_attention"]
    args = [real(*shape, seed=at) for at, shape in enumerate(shapes)]
    factor = np.abs(real(2, 4, 5, seed=5))
    y, _ = REGISTRY["scaled_dot_product_attention"].evaluate(*args, factor, **{**params, "dropped": True})
    assert len(asked) == 1
    np.testing.assert_allclose(y, 2 * factor @ args[2], rtol=1e-12)
