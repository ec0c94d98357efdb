"""PyTorch's names of what made a tensor: `grad_fn=<MulBackward0>`.

The primitive of a node decides, with the shapes that it was given. Where several of PyTorch's functions are one
primitive here, or one of them is several, the name that the user's line calls decides: `x.mean()` ends in a division
by n, and is MeanBackward0 all the same. A line without source, in a program that is executed from a text, has the
name of its primitive. After a backward walk, a node has neither parents nor saved values; the line decides then, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from glassgrad.base import provenance
from glassgrad.base.tables import pairs
from glassgrad.engine.node import PICK, Node
from glassgrad.ops.core import PRIMITIVES as KNOWN

# Primitive -> PyTorch's name without "Backward0"; those that are not here have their own name in capitals.
PRIMITIVES = pairs("""
    subtract=Sub multiply=Mul divide=Div negative=Neg clip=Clamp copy=Clone concat=Cat astype=ToCopy
    layer_norm=NativeLayerNorm batch_norm=NativeBatchNorm cross_entropy=NllLoss take_along_axis=Gather
    put_along_axis=Scatter broadcast_to=Expand permute_dims=Permute reshape=View root=Sqrt norm=LinalgVectorNorm
    gammaln=Lgamma log1p=Log1P im2col=Im2Col pad=ConstantPadNd sliding_window=Unfold conv2d=Convolution
    conv2d_input=Convolution conv2d_weight=Convolution max_pool2d=MaxPool2DWithIndices
    resample=UpsampleNearest2D inv=LinalgInvEx det=LinalgDet solve=LinalgSolveEx svd=LinalgSvd qr=LinalgQr
    cholesky=LinalgCholeskyEx eigh=LinalgEigh eig=LinalgEig slogdet=LinalgSlogdet lstm=MkldnnRnnLayer gru=Stack
    rnn=Stack logsumexp=Logsumexp logaddexp=Logaddexp logaddexp2=Logaddexp2 square=Pow fft=FftC2C rfft=FftR2C
    digamma=Digamma max=Amax min=Amin pinv=LinalgPinv recurrence=Stack
    """)

# What the user's line calls, and the primitive that it ends in -> the same.
CALLS = pairs("""
    mean.divide=Mean std.root=Std t.permute_dims=T transpose.permute_dims=Transpose swapaxes.permute_dims=Transpose
    swapdims.permute_dims=Transpose mT.permute_dims=Transpose unsqueeze.reshape=Unsqueeze squeeze.reshape=Squeeze
    stack.reshape=Stack split.getitem=Split chunk.getitem=Split unbind.getitem=Unbind repeat.reshape=Repeat
    masked_fill.where=MaskedFill index_select.getitem=IndexSelect embedding.getitem=Embedding topk.take_along_axis=Topk
    sort.take_along_axis=Sort cummax.take_along_axis=Cummax cummin.take_along_axis=Cummin max.reshape=Max
    min.reshape=Min max.max=Max min.min=Min max.take_along_axis=Max min.take_along_axis=Min median.reshape=Median
    aminmax.min=Aminmax aminmax.max=Aminmax trace.sum=Trace nansum.sum=Nansum roll.reshape=Roll selu.multiply=Elu
    smooth_l1_loss.divide=SmoothL1Loss huber_loss.divide=HuberLoss l1_loss.divide=Mean nll_loss.divide=NllLoss
    nll_loss.negative=NllLoss
    kl_div.divide=Mean addmm.add=Addmm addcmul.add=Addcmul addcdiv.add=Addcdiv baddbmm.add=Baddbmm
    dropout.where=Mul pixel_shuffle.reshape=PixelShuffle frac.subtract=Frac renorm.multiply=Renorm cdist.where=Cdist
    cross.subtract=LinalgCross complex.view_as_complex=Complex index_add.add=IndexAdd glu.multiply=Glu
    prelu.where=PreluKernel hardsigmoid.divide=Hardsigmoid relu6.hardtanh=Hardtanh celu.where=Celu
    threshold.where=Threshold rrelu.leaky_relu=RreluWithNoise fft.view_as_complex=FftR2C rfft.view_as_complex=FftR2C
    take.getitem=Take masked_select.getitem=MaskedSelect dist.norm=Dist logit.multiply=Logit deg2rad.multiply=Deg2Rad
    rad2deg.multiply=Rad2Deg zero_.at_set=Zero group_norm.reshape=NativeGroupNorm conv1d.reshape=Convolution
    conv_transpose1d.reshape=Convolution block_diag.concat=BlockDiag var_mean.var=VarMean std_mean.root=StdMean
    max_pool2d.reshape=MaxPool2DWithIndices avg_pool2d.reshape=AvgPool2D avg_pool2d.multiply=AvgPool2D
     adaptive_avg_pool2d.reshape=AdaptiveAvgPool2D
    kron.reshape=UnsafeView clamp_min.clip=ClampMin clamp_max.clip=ClampMax
    """)

_QUOTIENTS = {"BinOp", "AugAssign", "div", "div_", "divide", "divide_", "true_divide", "true_divide_"}
_OVER_ALL = {"Sum": "01", "Mean": "01", "Prod": "01", "Max": "10", "Min": "10", "Median": "01"}


def backward_name(node: Node) -> str:
    """Return PyTorch's name for a node, as near as this graph tells."""
    # PICK: one of the results of a primitive with several
    of = node.parents[0] if node.prim is PICK and node.parents else node
    prim = of.prim.name
    if KNOWN.get(prim) is not of.prim:  # an `autograd.Function`
        return f"{prim}Backward"
    whole = _SHAPED[prim](of) if prim in _SHAPED else None
    if whole is not None:
        return whole
    called = _called(of)
    stem = CALLS.get(f"{called}.{prim}") or (_mean(of) if prim == "divide" else None) or PRIMITIVES.get(prim)
    stem = stem or "".join(part.capitalize() for part in prim.split("_"))
    return f"{stem}Backward{_variant(stem, of)}"


def _called(node: Node) -> str:
    return provenance.called(node.code, node.lasti)


def _variant(name: str, node: Node) -> str:
    """Return which of several functions of one name PyTorch took: over all elements, or along dimensions."""
    if name in _OVER_ALL:
        return _OVER_ALL[name][int(bool(node.shape))]
    return {"Clamp": "1"}.get(name, "0")


def _mean(node: Node) -> str | None:
    """Tell a mean, a sum over n, from other quotients; a loss whose module hides its name ends in one."""
    called = _called(node)
    if called in _QUOTIENTS:
        return None
    if not node.parents:  # after a walk
        return None if node.shape or not called else "Mean"
    total = node.parents[0]
    if not isinstance(total, Node) or total.prim.name != "sum" or node.parents[1] is not None:
        return None
    axes, before = total.params["axis"], _shape(total.parents[0])
    count = node.saved[2] if type(node.saved) is tuple else None  # after a walk it is gone
    if before is None or not isinstance(count, int | float | None):
        return None
    return "Mean" if count is None or count == math.prod([before[axis] for axis in axes]) else None


def _shape(parent: object) -> tuple[int, ...] | None:
    return tuple(parent.shape) if hasattr(parent, "shape") else None


def _ranks(node: Node) -> list[int | None]:
    """Return how many dimensions the arguments have, where the node or its parents know it."""
    known = node.saved[1:] if type(node.saved) is tuple else (None,) * len(node.parents)
    shapes = [
        tuple(value.shape) if hasattr(value, "shape") else _shape(parent)
        for value, parent in zip(known, node.parents, strict=False)
    ]
    return [None if shape is None else len(shape) for shape in shapes]


# --- names that depend on more than the primitive -------------------------------------------------


def _product(node: Node) -> str:
    a, b = [*_ranks(node), None, None][:2]
    match len(node.shape):
        case 0:
            return "DotBackward0"
        case 1:
            return "SqueezeBackward4" if a == 1 else "MvBackward0"
        case 2 if (a, b) != (3, 1):
            return "MmBackward0"
    return "BmmBackward0" if _called(node) == "bmm" else "UnsafeViewBackward0"


def _layer(node: Node) -> str:
    biased, rank = len(node.parents) != 2, len(node.shape)  # after a walk: as most layers are
    if rank == 2:
        return "AddmmBackward0" if biased else "MmBackward0"
    return "ViewBackward0" if biased else "UnsafeViewBackward0" if rank > 2 else "SqueezeBackward4"


def _power(node: Node) -> str:
    base, exponent = node.saved[1:3] if type(node.saved) is tuple else (None, None)
    if isinstance(base, int | float):
        return "PowBackward2"
    return "PowBackward1" if hasattr(exponent, "shape") else "PowBackward0"


def _difference(node: Node) -> str | None:
    """Name `1 - x` as PyTorch does; the number is not kept, so that the user's line has to tell."""
    first = (node.place.operands or ("",))[0]
    number = first.replace(".", "", 1).replace("e-", "", 1).isdigit()
    return "RsubBackward1" if number and _called(node) == "-" else None


def _part(node: Node) -> str | None:
    called, spec = _called(node), node.params["spec"]
    if f"{called}.getitem" in CALLS:
        return None
    kinds = [_kind(one) for one in spec if one is not Ellipsis]
    if {"array", "places"} & set(kinds):
        return "EmbeddingBackward0" if "places" in kinds and called != "[]" else "IndexBackward0"
    narrowed = any(_kind(one) == "slice" and any(part is not None for part in one) for one in spec)
    if not kinds or kinds[-1] == "none":
        return "UnsqueezeBackward0" if kinds else "AliasBackward0"
    chosen = "int" in kinds and (kinds[-1] == "int" or not narrowed)
    return "SelectBackward0" if chosen else "SliceBackward0"


def _kind(one: object) -> str:
    """Return what an entry of an index is: int, slice, none, or one of the words for arrays."""
    if one is None or isinstance(one, int):
        return "none" if one is None else "int"
    return "slice" if isinstance(one, tuple) else str(one)


def _write(node: Node) -> str:
    return {"fill_": "FillBackward2", "zero_": "ZeroBackward0"}.get(_called(node), "CopySlices")


_SHAPED: dict[str, Callable[[Node], str | None]] = {
    "matmul": _product,
    "linear": _layer,
    "power": _power,
    "subtract": _difference,
    "getitem": _part,
    "at_set": _write,
    "floor_divide": lambda _node: "NotImplemented",
}
