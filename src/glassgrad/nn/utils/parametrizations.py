"""`torch.nn.utils.parametrizations`: orthogonal weights, weight norm and spectral norm as parametrizations.

Sources: Salimans and Kingma 2016 (weight norm); Miyato et al. 2018 (spectral norm); Lezcano-Casado 2019 (orthogonal
matrices by way of a trivialization).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import linalg
from glassgrad.base import documents
from glassgrad.engine import random
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tensors import creation
from glassgrad.errors.missing import lister
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Buffer
from glassgrad.nn.utils.parametrize import register_parametrization
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.shape import cat


def norm_except(v: Array, dim: int | None) -> Array:
    """Return the Euclidean norms over all dimensions but one, which keeps its place; over all with None or -1."""
    if dim is None or dim == -1:
        return v.square().sum().sqrt()
    others = tuple(axis for axis in range(len(v.shape)) if axis != dim % len(v.shape))
    return v.square().sum(others, True).sqrt()


def unit(v: Array, eps: float) -> Array:
    """Return a vector of length 1, or shorter if it was shorter than `eps`."""
    return v / v.square().sum().sqrt().clamp(min=eps)


def as_matrix(weight: Array, dim: int) -> Array:
    """Return a weight as a matrix with a row for each index of `dim`."""
    moved = weight if dim == 0 else weight.movedim(dim, 0)
    return moved.reshape(moved.shape[0], -1)


def iterate(matrix: Array, u: Tensor, v: Tensor, rounds: int, eps: float) -> None:
    """Power iteration for the largest singular value: move u, and then v, towards its vectors, in place."""
    with no_grad():
        plain = matrix.detach()
        left, right = u.detach(), v.detach()
        for _ in range(rounds):
            left = unit(plain @ right, eps)
            right = unit(plain.T @ left, eps)
        u.copy_(left)
        v.copy_(right)


def largest(matrix: Array, u: Array, v: Array) -> Array:
    """Return ``u @ matrix @ v``, the largest singular value once u and v have converged."""
    return (u.detach().clone() * (matrix @ v.detach().clone())).sum()


def start(matrix: Array, eps: float) -> tuple[Buffer, Buffer]:
    """Return random vectors to begin a power iteration with."""
    rows, columns = matrix.shape
    u, v = (Buffer(unit(random.randn(size, dtype=matrix.dtype), eps).array) for size in (rows, columns))
    return u, v


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Array, weight_v: Array) -> Array:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Array) -> tuple[Array, Array]:
        return norm_except(weight, self.dim), weight


class _SpectralNorm(Module):
    def __init__(self, weight: Array, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps
        if len(weight.shape) > 1:
            matrix = as_matrix(weight.detach(), dim)
            self._u, self._v = start(matrix, eps)
            iterate(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Array) -> Array:
        if len(weight.shape) == 1:
            return unit(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
        return weight / largest(matrix, self._u, self._v)

    def right_inverse(self, value: Array) -> Array:
        return value


class _Orthogonal(Module):
    base: Any

    def __init__(self, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        self.orthogonal_map, self.use_trivialization = orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Array) -> Array:
        rows, columns = x.shape[-2:]
        wide = rows < columns
        if wide:
            x, rows, columns = x.mT, columns, rows
        q = self._reflections(x) if self.orthogonal_map == "householder" else self._rotation(x, rows, columns)
        if self.use_trivialization and self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def _rotation(self, x: Array, rows: int, columns: int) -> Array:
        """Return an orthogonal matrix from the skew-symmetric part of a lower triangle."""
        x = x.tril()
        if rows != columns:
            x = cat([x, x.new_zeros((*x.shape[:-2], rows, rows - columns))], -1)
        skew = x - x.mT
        if self.orthogonal_map == "matrix_exp":
            q = linalg.matrix_exp(skew)
        else:
            eye = creation.eye(rows, dtype=x.dtype)
            q = linalg.solve(eye - 0.5 * skew, eye + 0.5 * skew)
        return q[..., :columns]

    def _reflections(self, x: Array) -> Array:
        """Return the product of the Householder reflections with the vectors below the diagonal."""
        below = x.tril(-1)
        size = 2.0 / (1.0 + below.square().sum(-2))
        eye = creation.eye(*x.shape[-2:], dtype=x.dtype)
        vectors = below + eye
        q = eye.expand(x.shape)
        for at in reversed(range(x.shape[-1])):
            v = vectors[..., at : at + 1]
            q = q - size[..., at : at + 1].unsqueeze(-1) * (v @ (v.mT @ q))
        return q * x.detach().diagonal(0, -2, -1).sign().unsqueeze(-2)

    def right_inverse(self, q: Array) -> Array:
        rows, columns = q.shape[-2:]
        wide = rows < columns
        matrix = np.asarray((q.mT if wide else q).detach().array)
        if not self.use_trivialization:
            return self._factors(matrix, wide)
        tall, short = matrix.shape[-2:]
        if tall != short:
            more = random.randn(*matrix.shape[:-2], tall, tall - short, dtype=matrix.dtype).array
            matrix = np.concatenate([matrix, more], -1)
        # For an orthogonal matrix this returns the matrix itself.
        found, upper = np.linalg.qr(matrix)
        signs = np.where(np.diagonal(upper, 0, -2, -1) < 0, -1, 1).astype(matrix.dtype)
        self.base = Buffer(found * signs[..., None, :])
        begin = np.zeros((*matrix.shape[:-1], short), matrix.dtype)
        begin[..., np.arange(short), np.arange(short)] = -1  # the signs, if reflections are used
        return Tensor(np.ascontiguousarray(begin.swapaxes(-1, -2)) if wide else begin)

    def _factors(self, matrix: Array, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise bad_option(
                "orthogonal",
                "use_trivialization",
                False,
                f"True where a weight is assigned, or orthogonal_map='householder' (it is {self.orthogonal_map!r})",
            )
        raw, size = np.linalg.qr(matrix, mode="raw")
        factors = np.ascontiguousarray(raw.swapaxes(-1, -2))
        place = np.arange(factors.shape[-1])
        signs = np.sign(factors[..., place, place])
        factors[..., place, place] = np.where(size == 0, -signs, signs)
        return Tensor(np.ascontiguousarray(factors.swapaxes(-1, -2)) if wide else factors)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Let a weight be ``g * v / |v|``, with its length and its direction as parameters; return the module.

    Args:
        module: the module with the weight.
        name: the weight's name.
        dim: the dimension along which each index has its own length; None for a single length.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.parametrizations.weight_norm(gg.nn.Linear(2, 3))
        >>> sorted(layer.state_dict())
        ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, which a power iteration updates during training.

    Args:
        module: the module with the weight.
        name: the weight's name.
        n_power_iterations: steps of power iteration per call in training mode.
        eps: lower bound of the length in a division.
        dim: the dimension of the outputs; 0, or 1 for transposed convolutions.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.parametrizations.spectral_norm(gg.nn.Linear(4, 4))
        >>> bool(gg.linalg.matrix_norm(layer.weight.detach(), 2) < 1.1)
        True
    """
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    weight = module.get_parameter(name)
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep the columns (or rows, if there are fewer) of a weight orthonormal.

    Args:
        module: the module with the weight.
        name: the name of the weight, which has two or more dimensions.
        orthogonal_map: "matrix_exp" (the default for square weights), "cayley" or "householder".
        use_trivialization: parametrise around the current weight, made orthogonal.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.parametrizations.orthogonal(gg.nn.Linear(4, 2))
        >>> bool(((layer.weight @ layer.weight.T - gg.eye(2)).abs() < 1e-6).all())
        True
    """
    weight = getattr(module, name)
    if len(weight.shape) < 2:
        raise bad_option("orthogonal", name, tuple(weight.shape), "at least 2 dimensions")
    maps = ("matrix_exp", "cayley", "householder")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in maps:
        raise bad_option("orthogonal", "orthogonal_map", orthogonal_map, ", ".join(maps))
    return register_parametrization(module, name, _Orthogonal(orthogonal_map, use_trivialization), unsafe=True)


documents.complete_all(__name__, globals())
__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
__dir__ = lister(__name__)
