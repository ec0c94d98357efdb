"""Tables of vectors indexed by integers, one by one or a bag at a time."""

from __future__ import annotations

from typing import Any

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.functional import products as F
from glassgrad.nn.module import Module, changed
from glassgrad.nn.parameter import Parameter


class _Table(Module):
    """Base of both: the table, drawn from a standard normal distribution unless it is given."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        weight: Tensor | None,
        frozen: bool,
        dtype: DType,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = F.padding_row(padding_idx, num_embeddings)
        if weight is None:
            self.weight = Parameter(creation.empty(num_embeddings, embedding_dim, dtype=dtype).array, not frozen)
            self.reset_parameters()
        else:
            self.weight = Parameter(weight.array, not frozen)

    def reset_parameters(self) -> None:
        """Draw a new table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.array[self.padding_idx] = 0

    def extra_repr(self) -> str:
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *self._options()])

    def _options(self) -> list[str]:
        return changed(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False)


class Embedding(_Table):
    """Integers (...) to vectors (..., embedding_dim); the table is drawn from a standard normal.

    Args:
        num_embeddings: rows of the table.
        embedding_dim: width of a vector.
        padding_idx: a row that starts at zero and gets no gradient.
        max_norm: used rows with a larger norm are scaled down to it.
        norm_type: the order of this norm.
        scale_grad_by_freq: divide the gradient of a row by how often it is used.
        sparse: accepted; gradients are dense.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.Embedding(27, 10)(gg.tensor([[0, 5, 13], [26, 1, 1]])).shape
        (2, 3, 10)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Embedding:
        """Return a layer with a given table, which is not trained unless `freeze` is False."""
        rows, width = embeddings.shape
        return cls(rows, width, _weight=embeddings, _freeze=freeze, **options)

    def forward(self, input: TensorLike) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)


class EmbeddingBag(_Table):
    """Sum, mean or largest of the rows of each bag of integers; see `nn.functional.embedding_bag`.

    Example:
        >>> import glassgrad as gg
        >>> bags = gg.nn.EmbeddingBag(27, 10, mode="sum")
        >>> bags(gg.tensor([0, 5, 13, 26]), gg.tensor([0, 3])).shape  # three, and one
        (2, 10)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        devices.check(device)
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: TensorLike, offsets: TensorLike | None = None, per_sample_weights: TensorLike | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def _options(self) -> list[str]:
        before = changed(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return [*before, f"mode={self.mode!r}", *changed(self, padding_idx=None)]


__all__ = ["Embedding", "EmbeddingBag"]
