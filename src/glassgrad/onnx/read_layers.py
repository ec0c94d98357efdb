"""ONNX operators as functions: convolutions, pooling, normalisation, recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import glassgrad.nn.functional as F
from glassgrad.onnx.calls import Call, Operator, gg
from glassgrad.ops.core import Array
from glassgrad.ops.fused_recurrent import gru_p, lstm_p, rnn_p

# --- windows --------------------------------------------------------------------------------------


def _pads(
    call: Call, x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the border of each spatial axis."""
    auto, dims = call.get("auto_pad", "NOTSET"), len(kernel)
    if auto in {"SAME_UPPER", "SAME_LOWER"}:
        found = []
        for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True):
            total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
            small, large = total // 2, total - total // 2
            found.append((small, large) if auto == "SAME_UPPER" else (large, small))
        return found
    given = call.get("pads") or [0] * 2 * dims
    return list(zip(given[:dims], given[dims:], strict=True))


def _bordered(x: Array, pads: Sequence[tuple[int, int]], value: float) -> Array:
    flat = [width for pair in reversed(pads) for width in pair]
    return F.pad(x, flat, "constant", value) if any(flat) else x


def _even(pads: Sequence[tuple[int, int]]) -> bool:
    return all(before == after for before, after in pads)


def _settings(call: Call, dims: int) -> tuple[list[int], list[int]]:
    return call.get("strides") or [1] * dims, call.get("dilations") or [1] * dims


def _conv(call: Call, x: Array, weight: Array, bias: Array = None) -> Any:
    dims = weight.ndim - 2
    strides, dilations = _settings(call, dims)
    pads = _pads(call, x, weight.shape[2:], strides, dilations)
    if not _even(pads):
        x, pads = _bordered(x, pads, 0.0), [(0, 0)] * dims
    function = getattr(F, f"conv{_checked(call, dims)}d")
    return function(x, weight, bias, strides, [before for before, _ in pads], dilations, call.get("group", 1))


def _checked(call: Call, dims: int) -> int:
    if dims not in {1, 2, 3}:
        raise call.refused(f"has {dims} spatial dimensions")
    return dims


def _conv_transpose(call: Call, x: Array, weight: Array, bias: Array = None) -> Any:
    dims = _checked(call, weight.ndim - 2)
    strides, dilations = _settings(call, dims)
    if call.get("output_shape") or call.get("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}:
        raise call.refused("states its output instead of its border")
    pads = _pads(call, x, weight.shape[2:], strides, dilations)
    extra = call.get("output_padding") or [0] * dims
    y = getattr(F, f"conv_transpose{dims}d")(x, weight, None, strides, 0, 0, call.get("group", 1), dilations)
    y = _bordered(y, [(-before, more - after) for (before, after), more in zip(pads, extra, strict=True)], 0.0)
    return y if bias is None else y + bias.reshape(-1, *(1,) * dims)


def _max_pool(call: Call, x: Array) -> Any:
    kernel = call.attributes["kernel_shape"]
    dims = _checked(call, len(kernel))
    strides, dilations = _settings(call, dims)
    pads = _pads(call, x, kernel, strides, dilations)
    indices = len(call.outputs) > 1 and bool(call.outputs[1])
    if indices and (not _even(pads) or dims != 2):
        raise call.refused("returns positions")
    if not _even(pads) or any(2 * before > k for (before, _), k in zip(pads, kernel, strict=True)):
        x, pads = _bordered(x, pads, -math.inf), [(0, 0)] * dims
    options = {"dilation": dilations, "ceil_mode": bool(call.get("ceil_mode", 0)), "return_indices": indices}
    found = getattr(F, f"max_pool{dims}d")(x, kernel, strides, [before for before, _ in pads], **options)
    return (found[0], _counted(found[1], x)) if indices else found


def _counted(places: Array, x: Array) -> Array:
    """Count positions through all images, as ONNX does."""
    n, c = x.shape[:2]
    first = np.arange(n * c).reshape(n, c, 1, 1) * (x.shape[2] * x.shape[3])
    return places + first


def _average_pool(call: Call, x: Array) -> Any:
    kernel = call.attributes["kernel_shape"]
    dims = _checked(call, len(kernel))
    strides, dilations = _settings(call, dims)
    if any(step != 1 for step in dilations):
        raise call.refused("has dilations")
    pads = _pads(call, x, kernel, strides, dilations)
    include = bool(call.get("count_include_pad", 0))
    if not _even(pads):
        if not include:
            raise call.refused("has different borders on its sides, which are not counted")
        x, pads = _bordered(x, pads, 0.0), [(0, 0)] * dims
    return getattr(F, f"avg_pool{dims}d")(
        x, kernel, strides, [before for before, _ in pads], bool(call.get("ceil_mode", 0)), include
    )


def _global(name: str) -> Operator:
    def operator(call: Call, x: Array) -> Any:
        return getattr(gg, name)(x, dim=tuple(range(2, x.ndim)), keepdim=True)

    return operator


def _resize(call: Call, x: Array, roi: Array = None, scales: Array = None, sizes: Array = None) -> Array:
    target = call.ints("sizes", sizes)
    factors = None if scales is None or np.size(scales) == 0 else call.known(scales, "scales").tolist()
    if target is None and factors is None:
        raise call.refused("has neither scales nor sizes")
    mode, where = call.get("mode", "nearest"), call.get("coordinate_transformation_mode", "half_pixel")
    dims = x.ndim - 2
    size = None if target is None else target[2:]
    scale = None if factors is None else factors[2:]
    if mode == "nearest" and where == "asymmetric" and call.get("nearest_mode", "round_prefer_floor") == "floor":
        return F.interpolate(x, size, scale, "nearest")
    smooth = {"linear": {1: "linear", 2: "bilinear", 3: "trilinear"}, "cubic": {2: "bicubic"}}.get(mode, {}).get(dims)
    if smooth is None or where not in {"half_pixel", "pytorch_half_pixel", "align_corners"}:
        raise call.refused(f"resizes with mode={mode!r} and {where!r}")
    return F.interpolate(x, size, scale, smooth, align_corners=where == "align_corners")


def _col2im(call: Call, x: Array, size: Any, kernel: Array) -> Array:
    pads = call.get("pads") or [0, 0, 0, 0]
    half = len(pads) // 2
    if pads[:half] != pads[half:]:
        raise call.refused("has different borders on its sides")
    strides, dilations = _settings(call, half)
    return F.fold(x, call.ints("size", size) or (), call.ints("kernel", kernel) or (), dilations, pads[:half], strides)


# --- normalisation --------------------------------------------------------------------------------


def _batch_norm(call: Call, x: Array, scale: Array, bias: Array, mean: Array, var: Array) -> Array:
    training = call.get("training", False)
    return F.batch_norm(x, mean, var, scale, bias, training, 1 - call.get("momentum", 0.9), call.get("epsilon", 1e-5))


def _layer_norm(call: Call, x: Array, scale: Array, bias: Array = None) -> Array:
    if sum(map(bool, call.outputs)) > 1:
        raise call.refused("returns its statistics")
    return F.layer_norm(x, tuple(x.shape[call.get("axis", -1) :]), scale, bias, call.get("epsilon", 1e-5))


def _rms_norm(call: Call, x: Array, scale: Array) -> Array:
    return F.rms_norm(x, tuple(x.shape[call.get("axis", -1) :]), scale, call.get("epsilon", 1e-5))


def _group_norm(call: Call, x: Array, scale: Array, bias: Array) -> Array:
    groups = call.attributes["num_groups"]
    if scale.shape[0] != x.shape[1]:  # one for a group, before opset 21
        each = x.shape[1] // groups
        scale, bias = (gg.repeat_interleave(one, each) for one in (scale, bias))
    return F.group_norm(x, groups, scale, bias, call.get("epsilon", 1e-5))


def _lrn(call: Call, x: Array) -> Array:
    return F.local_response_norm(
        x, call.attributes["size"], call.get("alpha", 1e-4), call.get("beta", 0.75), call.get("bias", 1.0)
    )


def _dropout(call: Call, x: Array, ratio: Array = None, training: Array = None) -> Array:
    share = call.get("ratio", 0.5) if ratio is None else float(call.known(ratio, "ratio"))
    return F.dropout(x, share, call.get("training", False))


def _scaler(call: Call, x: Array) -> Array:
    """`Scaler` of scikit-learn's exports."""
    offset, scale = (
        np.array(call.get(name, default), np.float32) for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    return (x - offset) * scale


# --- recurrent layers -------------------------------------------------------------------------------

# Positions of our gates among ONNX's: our i f g o in its i o f c, our r z n in its z r h.
_ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


def _gates(weight: Array, kind: str) -> Array:
    order = _ORDER[kind]
    n = weight.shape[0] // len(order)
    return weight if len(order) == 1 else gg.cat([weight[at * n : (at + 1) * n] for at in order], 0)


def _recurrent(kind: str) -> Operator:
    def operator(
        call: Call,
        x: Array,
        w: Array,
        r: Array,
        b: Array = None,
        lengths: Array = None,
        h: Array = None,
        c: Array = None,
        p: Array = None,
    ) -> Any:
        rectified = _understood(call, kind, p)
        directions, n = w.shape[0], r.shape[2]
        if call.get("layout", 0):
            x = x.transpose(0, 1)
        states = [h, c] if kind == "LSTM" else [h]
        empty = np.zeros((directions, x.shape[1], n), x.dtype)
        found = []
        for at in range(directions):
            before = [(empty if state is None else state)[at] for state in states]
            parts = [_gates(one[at], kind) for one in (w, r)]
            half = r.shape[1]
            if b is not None:
                parts += [_gates(b[at, :half], kind), _gates(b[at, half:], kind)]
            flags = {"biased": b is not None, "ragged": lengths is not None, "batch_first": False}
            if kind == "RNN":
                flags["rectified"] = rectified
            if lengths is not None:
                parts.append(lengths)
            flags["reverse"] = at == 1 or call.get("direction") == "reverse"
            found.append(_PRIMITIVES[kind](x, *before, *parts, **flags))
        stacked = [gg.stack([one[place] for one in found], 0 if place else 1) for place in range(1 + len(states))]
        if call.get("layout", 0):
            stacked = [stacked[0].permute(2, 0, 1, 3), *[one.transpose(0, 1) for one in stacked[1:]]]
        return tuple(stacked)

    return operator


_PRIMITIVES = {"LSTM": lstm_p, "GRU": gru_p, "RNN": rnn_p}


def _understood(call: Call, kind: str, peepholes: Array) -> bool:
    """Return whether the layer uses ReLU; raise if it is not supported."""
    directions = 2 if call.get("direction", "forward") == "bidirectional" else 1
    given = call.get("activations") or _ACTIVATIONS[kind] * directions
    rectified = kind == "RNN" and given == ["Relu"] * directions
    if (given != _ACTIVATIONS[kind] * directions and not rectified) or call.get("clip") or call.get("input_forget", 0):
        raise call.refused("has other activations than the usual, or clips its cells")
    if peepholes is not None:
        raise call.refused("has peepholes")
    if kind == "GRU" and not call.get("linear_before_reset", 0):
        raise call.refused("resets its state before the product (linear_before_reset=0)", "export it from PyTorch.")
    return rectified


LAYERS: dict[str, Operator] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("amax"),
    "Resize": _resize,
    "Col2Im": _col2im,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "InstanceNormalization": lambda call, x, scale, bias: F.instance_norm(
        x, None, None, scale, bias, True, 0.1, call.get("epsilon", 1e-5)
    ),
    "LpNormalization": lambda call, x: F.normalize(x, call.get("p", 2), call.get("axis", -1), 1e-30),
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "LRN": _lrn,
    "Dropout": _dropout,
    "Scaler": _scaler,
    "LSTM": _recurrent("LSTM"),
    "GRU": _recurrent("GRU"),
    "RNN": _recurrent("RNN"),
}
