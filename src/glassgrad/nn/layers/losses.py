"""Losses as layers: each calls the function of `nn.functional` with its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.nn.functional import classes as functional_classes
from glassgrad.nn.functional import ctc as functional_ctc
from glassgrad.nn.functional import losses as functional_losses
from glassgrad.nn.module import Module
from glassgrad.nn.reduction import reduction_of

_Old = bool | None  # `size_average` and `reduce`, PyTorch's older form of `reduction`
_Lengths = TensorLike | Sequence[int]


class _Loss(Module):
    """Base of all losses: `reduction` is "mean", "sum" or "none"."""

    def __init__(self, size_average: _Old = None, reduce: _Old = None, reduction: str = "mean") -> None:
        super().__init__()
        if reduction != "batchmean":
            reduction = reduction_of(reduction, size_average, reduce, type(self).__name__)
        self.reduction = reduction


class _Weighted(_Loss):
    """Losses with a weight for each class or element, which is part of the state."""

    def __init__(
        self, weight: Tensor | None = None, size_average: _Old = None, reduce: _Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# --- of classes -----------------------------------------------------------------------------------


class CrossEntropyLoss(_Weighted):
    """-log softmax(input)[target]; see `nn.functional.cross_entropy` for shapes and options.

    Example:
        >>> import glassgrad as gg
        >>> loss = gg.nn.CrossEntropyLoss(label_smoothing=0.1)
        >>> round(loss(gg.tensor([[4.0, 0.0]]), gg.tensor([0])).item(), 4)
        0.2181
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: _Old = None,
        ignore_index: int = -100,
        reduce: _Old = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_classes.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_Weighted):
    """-input[target] for log-probabilities; see `nn.functional.nll_loss`.

    Example:
        >>> import glassgrad as gg
        >>> logp = gg.tensor([[0.25, 0.75]]).log()
        >>> gg.nn.NLLLoss()(logp, gg.tensor([1]))
        tensor(0.2877)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: _Old = None,
        ignore_index: int = -100,
        reduce: _Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_classes.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


# --- of differences -------------------------------------------------------------------------------


class MSELoss(_Loss):
    """(input - target)**2, averaged.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MSELoss()(gg.tensor([1.0, 3.0]), gg.zeros(2))
        tensor(5.)
    """

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """|input - target|, averaged.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.L1Loss()(gg.tensor([1.0, 3.0]), gg.zeros(2))
        tensor(2.)
    """

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """A parabola within `beta` of the target, |input - target| - beta / 2 outside (Girshick 2015).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.SmoothL1Loss(reduction="none")(gg.tensor([0.5, 3.0]), gg.zeros(2))
        tensor([0.125, 2.5  ])
    """

    def __init__(
        self, size_average: _Old = None, reduce: _Old = None, reduction: str = "mean", beta: float = 1.0
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """A parabola within `delta` of the target, straight lines outside (Huber 1964).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.HuberLoss(reduction="none")(gg.tensor([0.5, 3.0]), gg.zeros(2))
        tensor([0.125, 2.5  ])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


# --- of probabilities -----------------------------------------------------------------------------


class BCELoss(_Weighted):
    """Binary cross-entropy of probabilities.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.BCELoss()(gg.tensor([0.5, 0.5]), gg.tensor([1.0, 0.0]))
        tensor(0.6931)
    """

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Weighted):
    """Binary cross-entropy of sigmoid(input), stable for logits of any size.

    `pos_weight` multiplies the loss of the positives.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.BCEWithLogitsLoss()(gg.tensor([2.0, -2.0]), gg.tensor([1.0, 0.0]))
        tensor(0.1269)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: _Old = None,
        reduce: _Old = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(_Loss):
    """t (log t - input) for log-probabilities `input`; "batchmean" divides the sum by the first size.

    Example:
        >>> import glassgrad as gg
        >>> p = gg.tensor([[0.5, 0.5]])
        >>> gg.nn.KLDivLoss(reduction="batchmean")(gg.tensor([[0.9, 0.1]]).log(), p)
        tensor(0.5108)
    """

    def __init__(
        self, size_average: _Old = None, reduce: _Old = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class GaussianNLLLoss(_Loss):
    """-log of a normal density with mean `input` and variance `var` (Nix and Weigend 1994).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.GaussianNLLLoss()(gg.tensor([1.0]), gg.tensor([3.0]), gg.tensor([4.0]))
        tensor(1.1931)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: TensorLike, target: TensorLike, var: TensorLike) -> Tensor:
        return functional_losses.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(_Loss):
    """-log of a Poisson probability with rate exp(input), or `input` without `log_input`.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.PoissonNLLLoss()(gg.tensor([0.0]), gg.tensor([2.0]))
        tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: _Old = None,
        eps: float = 1e-8,
        reduce: _Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


# --- with margins ---------------------------------------------------------------------------------


class _Margin(_Loss):
    """Losses whose first option is a margin."""

    def __init__(
        self, margin: float = 0.0, size_average: _Old = None, reduce: _Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_Margin):
    """x where the target is 1, max(0, margin - x) where it is -1.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.HingeEmbeddingLoss()(gg.tensor([0.25, 0.25]), gg.tensor([1.0, -1.0]))
        tensor(0.5)
    """

    def __init__(
        self, margin: float = 1.0, size_average: _Old = None, reduce: _Old = None, reduction: str = "mean"
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(_Margin):
    """max(0, -t (x1 - x2) + margin).

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MarginRankingLoss()(gg.tensor([1.0, 3.0]), gg.tensor([2.0, 2.0]), gg.tensor([1.0, 1.0]))
        tensor(0.5)
    """

    def forward(self, input1: TensorLike, input2: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Margin):
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.CosineEmbeddingLoss()(gg.tensor([[1.0, 0.0]]), gg.tensor([[0.0, 1.0]]), gg.tensor([1.0]))
        tensor(1.)
    """

    def forward(self, input1: TensorLike, input2: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-t x)) for targets 1 and -1.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.SoftMarginLoss()(gg.tensor([2.0, -2.0]), gg.tensor([1.0, -1.0]))
        tensor(0.1269)
    """

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_Weighted):
    """The sum over other classes of max(0, margin - x[target] + x[i])**p, divided by the number of classes.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MultiMarginLoss()(gg.tensor([[0.5, 1.0, 0.0]]), gg.tensor([1]))
        tensor(0.1667)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: _Old = None,
        reduce: _Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(_Loss):
    """`MultiMarginLoss` for several targets per example.

    Example:
        >>> import glassgrad as gg
        >>> scores, classes = gg.tensor([[0.1, 0.2, 0.4, 0.8]]), gg.tensor([[3, 0, -1, -1]])  # two are right
        >>> gg.nn.MultiLabelMarginLoss()(scores, classes)
        tensor(0.85)
    """

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Weighted):
    """Binary cross-entropy of sigmoid(input) for each class, averaged over classes.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.MultiLabelSoftMarginLoss()(gg.tensor([[2.0, -2.0]]), gg.tensor([[1.0, 0.0]]))
        tensor(0.1269)
    """

    def forward(self, input: TensorLike, target: TensorLike) -> Tensor:
        return functional_losses.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, |a - p| - |a - n| + margin) (Balntas et al. 2016).

    Example:
        >>> import glassgrad as gg
        >>> a, p, n = gg.tensor([[0.0]]), gg.tensor([[1.0]]), gg.tensor([[1.5]])
        >>> gg.nn.TripletMarginLoss()(a, p, n)
        tensor(0.5)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: _Old = None,
        reduce: _Old = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: TensorLike, positive: TensorLike, negative: TensorLike) -> Tensor:
        return functional_losses.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a given distance function.

    Example:
        >>> import glassgrad as gg
        >>> loss = gg.nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(-1))
        >>> loss(gg.tensor([[0.0]]), gg.tensor([[1.0]]), gg.tensor([[1.5]]))
        tensor(0.5)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: TensorLike, positive: TensorLike, negative: TensorLike) -> Tensor:
        return functional_losses.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


# --- of sequences ---------------------------------------------------------------------------------


class CTCLoss(_Loss):
    """-log of the probability of a label sequence under every alignment (Graves et al. 2006).

    Example:
        >>> import glassgrad as gg
        >>> logp = gg.full((4, 1, 3), 1 / 3).log()  # 4 times, 1 example, 3 classes
        >>> gg.nn.CTCLoss()(logp, gg.tensor([[1, 2]]), gg.tensor([4]), gg.tensor([2]))
        tensor(0.8432)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: TensorLike, targets: TensorLike, input_lengths: _Lengths, target_lengths: _Lengths
    ) -> Tensor:
        return functional_ctc.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


__all__ = ["BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss"]
__all__ += ["HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss"]
__all__ += ["MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss"]
__all__ += ["SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss"]
