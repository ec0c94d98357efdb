"""Losses against PyTorch's: every option, values and gradients in float64, and messages for bad input."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.nn import functional as F

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of the losses")
TF = torch.nn.functional

REDUCTIONS = ("mean", "sum", "none")


def real(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def chance(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).uniform(0.05, 0.95, shape)


def signs(*shape: int) -> np.ndarray[Any, Any]:
    return np.where(np.random.default_rng(5).random(shape) < 0.5, -1.0, 1.0)


def labels(classes: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(classes).integers(0, classes, shape)


def compare(
    ours: Callable[..., Any], theirs: Callable[..., Any], inputs: list[Any], fixed: list[Any] | None = None
) -> None:
    """Compare values and the gradients of `inputs`; `fixed` are further arguments without a gradient."""
    fixed = fixed or []
    mine = [gg.tensor(x, requires_grad=True) for x in inputs]
    other = [torch.tensor(x, requires_grad=True) for x in inputs]
    y = ours(*mine, *(gg.tensor(x) for x in fixed))
    expected = theirs(*other, *(torch.tensor(x) for x in fixed))
    assert y.shape == tuple(expected.shape)
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    cotangent = np.random.default_rng(1).normal(size=y.shape)
    y.backward(gg.tensor(cotangent))
    expected.backward(torch.tensor(cotangent))
    for x, x_expected in zip(mine, other, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), x_expected.grad.numpy(), rtol=1e-8, atol=1e-11)


def both(name: str, inputs: list[Any], fixed: list[Any] | None = None, **options: Any) -> None:
    def convert(make: Any) -> dict[str, Any]:
        return {key: make(v) if isinstance(v, np.ndarray) else v for key, v in options.items()}

    compare(
        lambda *xs: getattr(F, name)(*xs, **convert(gg.tensor)),
        lambda *xs: getattr(TF, name)(*xs, **convert(torch.tensor)),
        inputs,
        fixed,
    )


# --- classes --------------------------------------------------------------------------------------

SHAPES = (((4, 3), (4,)), ((3,), ()), ((2, 3, 4), (2, 4)), ((2, 3, 2, 2), (2, 2, 2)))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("shape", "target"), SHAPES)
@pytest.mark.parametrize(
    ("weighted", "ignore", "smoothing"), list(itertools.product((False, True), (-100, 1), (0.0, 0.3)))
)
def test_cross_entropy_of_class_indices(
    reduction: str, shape: tuple[int, ...], target: tuple[int, ...], weighted: bool, ignore: int, smoothing: float
) -> None:
    t = np.asarray(labels(3, *target))
    if t.ndim == 0 and ignore == t:
        ignore = 2
    both(
        "cross_entropy",
        [real(*shape)],
        [t],
        weight=np.array([0.5, 2.0, 1.5]) if weighted else None,
        ignore_index=ignore,
        label_smoothing=smoothing,
        reduction=reduction,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [shape for shape, _ in SHAPES])
@pytest.mark.parametrize(("weighted", "smoothing"), list(itertools.product((False, True), (0.0, 0.3))))
def test_cross_entropy_of_probabilities(
    reduction: str, shape: tuple[int, ...], weighted: bool, smoothing: float
) -> None:
    target = chance(*shape)
    weight = np.array([0.5, 2.0, 1.5]) if weighted else None
    both("cross_entropy", [real(*shape), target], weight=weight, label_smoothing=smoothing, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("shape", "target"), SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(reduction: str, shape: tuple[int, ...], target: tuple[int, ...], weighted: bool) -> None:
    weight = np.array([0.5, 2.0, 1.5]) if weighted else None
    ignore = -100 if not target else 1
    both("nll_loss", [real(*shape)], [np.asarray(labels(3, *target))], weight=weight, ignore_index=ignore,
         reduction=reduction)  # fmt: skip  # a table


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_the_mean_over_nothing_is_nan(name: str) -> None:
    for given in ({"ignore_index": 2}, {"ignore_index": 2, "weight": gg.ones(3)}):
        y = getattr(F, name)(gg.tensor(real(2, 3)), gg.tensor([2, 2]), **given)
        assert math.isnan(y.item())


def test_the_mean_of_no_rows_has_a_zero_gradient() -> None:
    target = np.array([1, 1, 1])
    for reduction in REDUCTIONS:
        both("cross_entropy", [real(3, 4)], [target], ignore_index=1, reduction=reduction)


def test_ignored_rows_may_hold_anything() -> None:
    logp = np.array([[-1.0, -2.0], [-math.inf, -math.inf]])
    y = F.nll_loss(gg.tensor(logp), gg.tensor([0, -100]), reduction="sum", weight=gg.tensor([1.0, 1.0]))
    assert y.item() == 1.0


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: F.cross_entropy(gg.zeros(2, 3), gg.tensor([0, 3])), errors.IndexRangeError, "label 3 is out of range"),
        (lambda: F.nll_loss(gg.zeros(2, 3), gg.tensor([0, -1])), errors.IndexRangeError, "label -1 is out of range"),
        (lambda: F.cross_entropy(gg.zeros(2, 3), gg.tensor([0.0, 1.0])), errors.KindError, "class indices as integers"),
        (lambda: F.cross_entropy(gg.zeros(2, 3), gg.tensor([0])), errors.ShapeError, "a target of shape (2,)"),
        (lambda: F.cross_entropy(gg.zeros(2, 3, 4), gg.zeros(2, 3).long()), errors.ShapeError, "shape (2, 4)"),
        (lambda: F.cross_entropy(gg.zeros(2, 3), gg.tensor([0, 1]), reduction="avg"), errors.ArgumentError, "'avg'"),
        (lambda: F.cross_entropy(gg.zeros(2, 3), gg.tensor([0, 1]), label_smoothing=2), errors.ArgumentError, "[0, 1]"),
        (lambda: F.binary_cross_entropy(gg.zeros(2), gg.zeros(2, 1)), errors.ShapeError, "a target of shape (2,)"),
        (lambda: F.smooth_l1_loss(gg.zeros(2), gg.zeros(2), beta=-1.0), errors.ArgumentError, "beta=-1.0"),
        (lambda: F.huber_loss(gg.zeros(2), gg.zeros(2), delta=0), errors.ArgumentError, "delta=0"),
    ],
)
def test_bad_input_is_named(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)
    assert "test_losses.py" in str(caught.value)


# --- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mse_loss", {}),
        ("l1_loss", {}),
        ("smooth_l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.3}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {}),
        ("huber_loss", {"delta": 0.4}),
        ("kl_div", {}),
        ("kl_div", {"log_target": True}),
        ("poisson_nll_loss", {}),
    ],
)
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
def test_differences(name: str, options: dict[str, Any], reduction: str) -> None:
    target = chance(3, 4) if name == "kl_div" and not options else real(3, 4, seed=1)
    both(name, [real(3, 4), target], reduction=reduction, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weighted_differences(name: str, reduction: str) -> None:
    both(name, [real(3, 4), real(3, 4, seed=1)], reduction=reduction, weight=chance(3, 4))


def test_older_spellings_of_the_reduction() -> None:
    x, t = gg.tensor([1.0, 2.0]), gg.tensor([0.0, 0.0])
    assert F.mse_loss(x, t, size_average=False).item() == 5.0
    assert F.mse_loss(x, t, size_average=True, reduction="sum").item() == 2.5
    assert F.mse_loss(x, t, reduce=False).tolist() == [1.0, 4.0]
    assert F.mse_loss(x, t, False).item() == 5.0
    assert F.cross_entropy(gg.zeros(2, 2), gg.tensor([0, 1]), None, False).item() == pytest.approx(2 * math.log(2))


def test_shapes_that_broadcast_by_accident_are_warned_of() -> None:
    with pytest.warns(errors.LossBroadcastWarning, match=r"input has shape \(3, 1\), the target \(3,\)") as told:
        F.mse_loss(gg.zeros(3, 1), gg.zeros(3))
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.mse_loss(gg.zeros(3), gg.zeros(3))


def test_kl_div_averages_over_the_batch_and_allows_zero_probabilities() -> None:
    target = np.array([[0.0, 1.0], [0.25, 0.75]])
    both("kl_div", [real(2, 2)], [target], reduction="batchmean")
    with np.errstate(divide="ignore"):
        logarithms = np.log(target)  # -inf: a probability of 0
    with np.errstate(invalid="ignore"):  # both give NaN there
        for reduction in ("none", "sum", "batchmean"):
            both("kl_div", [real(2, 2)], [logarithms], reduction=reduction, log_target=True)


# --- probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("weighted", "positive"), list(itertools.product((False, True), (False, True))))
def test_binary_cross_entropy_with_logits(reduction: str, weighted: bool, positive: bool) -> None:
    both(
        "binary_cross_entropy_with_logits",
        [real(3, 4) * 5, chance(3, 4)],
        reduction=reduction,
        weight=chance(4) if weighted else None,
        pos_weight=chance(4, seed=2) if positive else None,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_binary_cross_entropy(reduction: str, weighted: bool) -> None:
    weight = chance(3, 4) if weighted else None
    both("binary_cross_entropy", [chance(3, 4), chance(3, 4, seed=3)], reduction=reduction, weight=weight)


def test_binary_cross_entropies_at_the_edges() -> None:
    edge = np.array([0.0, 1.0, 0.0, 1.0])
    target = np.array([0.0, 1.0, 1.0, 0.0])
    both("binary_cross_entropy", [edge], [target], reduction="none")
    both("binary_cross_entropy_with_logits", [np.array([1e4, -1e4, 0.0, 1e4])], [target], reduction="none")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("var", [(3, 4), (3, 1), (3,)])
def test_gaussian_nll_loss(reduction: str, full: bool, var: tuple[int, ...]) -> None:
    both("gaussian_nll_loss", [real(3, 4), real(3, 4, seed=1), chance(*var)], full=full, reduction=reduction)


def test_gaussian_nll_loss_keeps_the_gradient_below_the_floor() -> None:
    both("gaussian_nll_loss", [real(4), real(4, seed=1), np.array([1e-9, 0.5, 1e-8, 2.0])], eps=1e-3)


@pytest.mark.parametrize(("log_input", "full"), list(itertools.product((False, True), (False, True))))
def test_poisson_nll_loss(log_input: bool, full: bool) -> None:
    target = np.array([0.0, 1.0, 3.0, 7.0])
    both("poisson_nll_loss", [chance(4)], [target], log_input=log_input, full=full)


# --- margins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_margins(reduction: str) -> None:
    target = signs(5)
    both("soft_margin_loss", [real(5)], [target], reduction=reduction)
    both("hinge_embedding_loss", [real(5)], [target], margin=0.7, reduction=reduction)
    both("margin_ranking_loss", [real(5), real(5, seed=1)], [target], margin=0.3, reduction=reduction)
    both("cosine_embedding_loss", [real(5, 3), real(5, 3, seed=1)], [target], margin=0.2, reduction=reduction)
    for p, weight in itertools.product((1, 2), (None, chance(4))):
        both("multi_margin_loss", [real(5, 4)], [labels(4, 5)], p=p, margin=0.8, weight=weight, reduction=reduction)
    both("multi_margin_loss", [real(4)], [np.array(2)], reduction=reduction)
    listed = np.array([[1, 3, -1, 0], [2, -1, 0, 0], [-1, 1, 2, 3]])
    both("multilabel_margin_loss", [real(3, 4)], [listed], reduction=reduction)
    both("multilabel_margin_loss", [real(4)], [listed[0]], reduction=reduction)
    both("multilabel_soft_margin_loss", [real(3, 4)], [labels(2, 3, 4) * 1.0], weight=chance(4), reduction=reduction)


@pytest.mark.parametrize(("swap", "p"), list(itertools.product((False, True), (1.0, 2.0, 3.0))))
def test_triplet_margin_loss(swap: bool, p: float) -> None:
    xs = [real(4, 3, seed=seed) for seed in range(3)]
    both("triplet_margin_loss", xs, swap=swap, p=p, margin=0.5)
    both("triplet_margin_with_distance_loss", xs, swap=swap, reduction="none")


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_similarity_and_distance(dim: int) -> None:
    both("cosine_similarity", [real(4, 3), real(4, 3, seed=1)], dim=dim)
    both("cosine_similarity", [np.zeros((2, 3)), real(2, 3)], dim=1)
    for p in (1.0, 2.0, 3.0):
        both("pairwise_distance", [real(4, 3), real(4, 3, seed=1)], p=p, keepdim=bool(dim))


# --- sequences ------------------------------------------------------------------------------------

TARGETS = np.array([[1, 2, 2], [3, 1, 0], [2, 0, 0]])
LENGTHS = ([6, 5, 4], [3, 2, 1])


def ctc(module: Any, library: Any, x: Any, targets: Any, lengths: Any, **options: Any) -> Any:
    return module.ctc_loss(module_log_softmax(library, x), library.tensor(targets), *lengths, **options)


def module_log_softmax(library: Any, x: Any) -> Any:
    return library.log_softmax(x, -1)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("blank", [0, 4])
def test_ctc_loss(reduction: str, blank: int) -> None:
    # Through log_softmax, since PyTorch's gradient of log_probs itself contains that of log_softmax already.
    for targets in (TARGETS, np.array([1, 2, 2, 3, 1, 2])):
        compare(
            lambda x, t=targets: ctc(F, gg, x, t, LENGTHS, reduction=reduction, blank=blank),
            lambda x, t=targets: ctc(TF, torch, x, t, LENGTHS, reduction=reduction, blank=blank),
            [real(6, 3, 5)],
        )
    compare(
        lambda x: ctc(F, gg, x, TARGETS[0], (6, 3), reduction=reduction, blank=blank),
        lambda x: ctc(TF, torch, x, TARGETS[0], (torch.tensor(6), torch.tensor(3)), reduction=reduction, blank=blank),
        [real(6, 5)],
    )


def test_ctc_loss_of_impossible_and_empty_sequences() -> None:
    lengths = ([6, 3, 4], [3, 2, 0])
    targets = np.array([[1, 2, 2], [3, 3, 0], [0, 0, 0]])
    short = ([6, 2, 4], [3, 2, 0])
    compare(
        lambda x: ctc(F, gg, x, targets, lengths, reduction="none"),
        lambda x: ctc(TF, torch, x, targets, lengths, reduction="none"),
        [real(6, 3, 5)],
    )
    compare(
        lambda x: ctc(F, gg, x, targets, short, zero_infinity=True),
        lambda x: ctc(TF, torch, x, targets, short, zero_infinity=True),
        [real(6, 3, 5)],
    )
    assert ctc(F, gg, gg.tensor(real(6, 3, 5)), targets, short, reduction="none")[1].item() == math.inf


def test_ctc_loss_is_the_sum_over_all_paths() -> None:
    """An oracle of its own: add up every path of labels that collapses to the target."""
    x = real(4, 1, 3)
    p = np.exp(x - np.log(np.exp(x).sum(-1, keepdims=True)))
    target = [1, 1]
    total = 0.0
    for path in itertools.product(range(3), repeat=4):
        collapsed = [label for at, label in enumerate(path) if label and (at == 0 or path[at - 1] != label)]
        if collapsed == target:
            total += float(np.prod([p[at, 0, label] for at, label in enumerate(path)]))
    y = F.ctc_loss(gg.log_softmax(gg.tensor(x), -1), gg.tensor([target]), [4], [2], reduction="sum")
    assert y.item() == pytest.approx(-math.log(total), rel=1e-12)


def test_ctc_loss_names_lengths_that_do_not_fit() -> None:
    with pytest.raises(errors.ShapeError, match="log_probs holds 2 examples, targets 1"):
        F.ctc_loss(gg.zeros(3, 2, 4), gg.tensor([[1]]), [3, 3], [1, 1])
    with pytest.raises(errors.ArgumentError, match="at most the 3 steps"):
        F.ctc_loss(gg.zeros(3, 1, 4), gg.tensor([[1]]), [4], [1])
