# Written by tools/stubs.py from the functions as they are when the library runs.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
from numpy.typing import DTypeLike
from glassgrad.engine.tensors.devices import device as device
from glassgrad.engine.random import Generator as Generator
from glassgrad.engine.tensor import Tensor as Tensor, TensorLike
from glassgrad.engine.typed import (
    CholeskyInfo,
    Device,
    EigResult,
    EighResult,
    Extreme,
    Frexp,
    Histogram,
    Ints,
    InverseInfo,
    LUFactors,
    LUFactorsInfo,
    LUResult,
    Number,
    QRResult,
    Reflectors,
    SVDResult,
    Sizes,
    SlogdetResult,
    SolveInfo,
    TensorOrArray,
    Tensors,
    TriangularSolution,
)

def fft(
    input: TensorOrArray, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None
) -> TensorOrArray:
    """Discrete Fourier transform along `dim`, cropped or zero-padded to `n`: a complex tensor."""

def fft2(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: builtins.str | None = None
) -> TensorOrArray:
    """`fft` over two dimensions."""

def fftfreq(
    n: builtins.int,
    d: builtins.float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The frequencies of `fft` for `n` samples `d` apart."""

def fftn(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = None, norm: builtins.str | None = None
) -> TensorOrArray:
    """`fft` over several dimensions, all of them by default."""

def fftshift(input: TensorOrArray, dim: Ints | None = None) -> TensorOrArray:
    """Move frequency 0 to the middle."""

def hfft(
    input: TensorOrArray, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None
) -> TensorOrArray:
    """The real spectrum (`n` numbers) of a conjugate-symmetric signal, given by its first half."""

def hfft2(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: builtins.str | None = None
) -> TensorOrArray:
    """`fft` over all but the last of two dimensions, then `hfft` over that."""

def hfftn(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = None, norm: builtins.str | None = None
) -> TensorOrArray:
    """`fft` over all but the last of several dimensions, then `hfft` over that."""

def ifft(
    input: TensorOrArray, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `fft`: a complex tensor."""

def ifft2(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: builtins.str | None = None
) -> TensorOrArray:
    """`ifft` over two dimensions."""

def ifftn(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = None, norm: builtins.str | None = None
) -> TensorOrArray:
    """`ifft` over several dimensions, all of them by default."""

def ifftshift(input: TensorOrArray, dim: Ints | None = None) -> TensorOrArray:
    """Undo `fftshift`."""

def ihfft(
    input: TensorOrArray, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `hfft`: the first n // 2 + 1 numbers of a complex signal from its real spectrum."""

def ihfft2(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `hfft2`."""

def ihfftn(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = None, norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `hfftn`."""

def irfft(
    input: TensorOrArray, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `rfft`: a real signal of `n` numbers (default: 2 (m - 1) for m frequencies)."""

def irfft2(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `rfft2`."""

def irfftn(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = None, norm: builtins.str | None = None
) -> TensorOrArray:
    """Inverse of `rfftn`."""

def rfft(
    input: TensorOrArray, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None
) -> TensorOrArray:
    """The n // 2 + 1 frequencies of a real signal, which determine the others: a complex tensor."""

def rfft2(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: builtins.str | None = None
) -> TensorOrArray:
    """`rfft` over the last of two dimensions, then `fft` over the other."""

def rfftfreq(
    n: builtins.int,
    d: builtins.float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The frequencies of `rfft` for `n` samples `d` apart."""

def rfftn(
    input: TensorOrArray, s: Ints | None = None, dim: Ints | None = None, norm: builtins.str | None = None
) -> TensorOrArray:
    """`rfft` over the last of several dimensions, then `fft` over the others."""
