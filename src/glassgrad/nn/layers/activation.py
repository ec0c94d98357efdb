"""Activations as layers: each calls the function of `nn.functional` with its options."""

from __future__ import annotations

from glassgrad.engine.tensor import Tensor, TensorLike
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.nn import init
from glassgrad.nn.functional import activation as F
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.ops.names import PUBLIC

# The public functions skip a step of the dispatch, which matters for such small layers.
_relu, _tanh, _sigmoid = PUBLIC["relu"], PUBLIC["tanh"], PUBLIC["sigmoid"]


class _Activation(Module):
    """An activation without parameters.

    `inplace` is accepted for compatibility with PyTorch; it does not save memory.
    """

    inplace: bool = False

    def extra_repr(self) -> str:
        return ", ".join(filter(None, (super().extra_repr(), "inplace=True" if self.inplace else "")))


# --- without options ------------------------------------------------------------------------------


class Tanh(_Activation):
    """tanh(x), elementwise.

    Example:
        >>> gg.nn.Tanh()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.7616,  0.1974,  0.964 ])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return _tanh(input)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x)), elementwise.

    Example:
        >>> gg.nn.Sigmoid()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([0.2689, 0.5498, 0.8808])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return _sigmoid(input)


class LogSigmoid(_Activation):
    """log(1 / (1 + exp(-x))), elementwise.

    Example:
        >>> gg.nn.LogSigmoid()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-1.3133, -0.5981, -0.1269])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.logsigmoid(input)


class Softsign(_Activation):
    """x / (1 + |x|), elementwise.

    Example:
        >>> gg.nn.Softsign()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.5   ,  0.1667,  0.6667])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.softsign(input)


class Tanhshrink(_Activation):
    """x - tanh(x), elementwise.

    Example:
        >>> gg.nn.Tanhshrink()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.2384,  0.0026,  1.036 ])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.tanhshrink(input)


# --- with `inplace` only --------------------------------------------------------------------------


class _Inplace(_Activation):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_Inplace):
    """max(x, 0), elementwise.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.ReLU()(gg.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return _relu(input)


class ReLU6(_Inplace):
    """x limited to [0, 6].

    Example:
        >>> gg.nn.ReLU6()(gg.tensor([-1.0, 0.2, 8.0]))
        tensor([0. , 0.2, 6. ])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.relu6(input)


class SiLU(_Inplace):
    """x * sigmoid(x), elementwise (Hendrycks and Gimpel 2016; Ramachandran et al. 2017).

    Example:
        >>> gg.nn.SiLU()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.2689,  0.11  ,  1.7616])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.silu(input)


class Mish(_Inplace):
    """x * tanh(softplus(x)), elementwise (Misra 2019).

    Example:
        >>> gg.nn.Mish()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.3034,  0.1326,  1.944 ])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.mish(input)


class SELU(_Inplace):
    """Scaled ELU, whose fixed point has mean 0 and variance 1 (Klambauer et al. 2017).

    Example:
        >>> gg.nn.SELU()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-1.1113,  0.2101,  2.1014])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.selu(input)


class Hardswish(_Inplace):
    """x * relu6(x + 3) / 6, elementwise (Howard et al. 2019).

    Example:
        >>> gg.nn.Hardswish()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.3333,  0.1067,  1.6667])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.hardswish(input)


class Hardsigmoid(_Inplace):
    """relu6(x + 3) / 6, elementwise.

    Example:
        >>> gg.nn.Hardsigmoid()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([0.3333, 0.5333, 0.8333])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.hardsigmoid(input)


# --- with numbers ---------------------------------------------------------------------------------


class GELU(_Activation):
    """x * Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016).

    `approximate="tanh"` is the formula of GPT-2.

    Example:
        >>> gg.nn.GELU()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.1587,  0.1159,  1.9545])
    """

    _shown = "approximate={approximate!r}"

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: TensorLike) -> Tensor:
        return F.gelu(input, self.approximate)


class LeakyReLU(_Activation):
    """x where it is positive, else `negative_slope` * x (Maas et al. 2013).

    Example:
        >>> gg.nn.LeakyReLU()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.01,  0.2 ,  2.  ])
    """

    _shown = "negative_slope={negative_slope}"

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: TensorLike) -> Tensor:
        return F.leaky_relu(input, self.negative_slope)


class _Alpha(_Activation):
    _shown = "alpha={alpha}"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class ELU(_Alpha):
    """x where it is positive, else alpha * (exp(x) - 1) (Clevert et al. 2016).

    Example:
        >>> gg.nn.ELU()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.6321,  0.2   ,  2.    ])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.elu(input, self.alpha)


class CELU(_Alpha):
    """x where it is positive, else alpha * (exp(x / alpha) - 1) (Barron 2017).

    Example:
        >>> gg.nn.CELU()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.6321,  0.2   ,  2.    ])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.celu(input, self.alpha)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta.

    PyTorch returns x itself where beta * x is above `threshold`; here the formula is exact for every x, so `threshold`
    matters only if it is not the default 20.

    Example:
        >>> gg.nn.Softplus()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([0.3133, 0.7981, 2.1269])
    """

    _shown = "beta={beta}, threshold={threshold}"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: TensorLike) -> Tensor:
        return F.softplus(input, self.beta, None if self.threshold == 20 else self.threshold)


class Hardtanh(_Activation):
    """x limited to [min_val, max_val].

    Example:
        >>> gg.nn.Hardtanh()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-1. ,  0.2,  1. ])
    """

    _shown = "min_val={min_val}, max_val={max_val}"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: TensorLike) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val)


class Threshold(_Activation):
    """x where it is above `threshold`, else `value`.

    Example:
        >>> gg.nn.Threshold(0.1, 20.0)(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([20. ,  0.2,  2. ])
    """

    _shown = "threshold={threshold}, value={value}"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: TensorLike) -> Tensor:
        return F.threshold(input, self.threshold, self.value)


class _Shrink(_Activation):
    _shown = "{lambd}"

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Softshrink(_Shrink):
    """x moved towards 0 by `lambd`, and 0 where |x| <= `lambd`.

    Example:
        >>> gg.nn.Softshrink()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-0.5,  0. ,  1.5])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.softshrink(input, self.lambd)


class Hardshrink(_Shrink):
    """x, and 0 where |x| <= `lambd`.

    Example:
        >>> gg.nn.Hardshrink()(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-1.,  0.,  2.])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.hardshrink(input, self.lambd)


class RReLU(_Activation):
    """Leaky relu with slopes drawn from [lower, upper] in training, and their mean otherwise (Xu et al. 2015).

    Example:
        >>> gg.nn.RReLU()(gg.tensor([-1.0, 0.2, 2.0])).shape
        (3,)
    """

    _shown = "lower={lower}, upper={upper}"

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: TensorLike) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training)


# --- along a dimension ----------------------------------------------------------------------------


class _Along(_Activation):
    _shown = "dim={dim}"

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_Along):
    """exp(x) / sum(exp(x)) along `dim`.

    Example:
        >>> gg.nn.Softmax(dim=0)(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([0.041, 0.136, 0.823])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_Along):
    """x - logsumexp(x) along `dim`.

    Example:
        >>> gg.nn.LogSoftmax(dim=0)(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([-3.1948, -1.9948, -0.1948])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_Along):
    """softmax(-x) along `dim`.

    Example:
        >>> gg.nn.Softmin(dim=0)(gg.tensor([-1.0, 0.2, 2.0]))
        tensor([0.7402, 0.2229, 0.0369])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(_Activation):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    Example:
        >>> gg.nn.Softmax2d()(gg.zeros(1, 2, 1, 1))
        tensor([[[[0.5]],
        <BLANKLINE>
                 [[0.5]]]])
    """

    def forward(self, input: TensorLike) -> Tensor:
        return F.softmax(input, -3)


class GLU(_Activation):
    """a * sigmoid(b), a and b the halves of x along `dim` (Dauphin et al. 2016).

    Example:
        >>> gg.nn.GLU()(gg.ones(4))
        tensor([0.7311, 0.7311])
    """

    _shown = "dim={dim}"

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: TensorLike) -> Tensor:
        return F.glu(input, self.dim)


# --- with parameters ------------------------------------------------------------------------------


class PReLU(Module):
    """Leaky relu with a learned slope: one, or one for each channel (He et al. 2015).

    Example:
        >>> gg.nn.PReLU()(gg.tensor([-1.0, 0.2, 2.0])).detach()
        tensor([-0.25,  0.2 ,  2.  ])
    """

    _shown = "num_parameters={num_parameters}"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: DType = None) -> None:
        devices.check(device)
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(creation.empty(num_parameters, dtype=dtype).array)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to their initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: TensorLike) -> Tensor:
        return F.prelu(input, self.weight)


__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU"]
__all__ += ["LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax"]
__all__ += ["Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]
