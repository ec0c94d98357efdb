"""Complex numbers: their parts, and conversions between complex and real arrays.

In the rules of all ops the cotangent of a complex z is dL/d(re) - i dL/d(im), so the rules of holomorphic functions
(sums, products, matrix products, exp, ...) need no change; other rules conjugate where necessary. Users see its
conjugate, dL/d(re) + i dL/d(im), PyTorch's convention. `tape.turned` converts between the two where gradients enter and
leave a walk.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from glassgrad.ops.axes import swap_last
from glassgrad.ops.complex_input import all_take_complex
from glassgrad.ops.core import PRIMITIVES, Array, Linear, linear
from glassgrad.ops.shape import broadcast_to_p, stack


def _as_pairs(xp: ModuleType, z: Array) -> Array:
    """View complex numbers (...) as an array (..., 2)."""
    real = xp.float32 if z.dtype == xp.complex64 else xp.float64
    return z[..., None].view(real)


def _as_complex(xp: ModuleType, pairs: Array) -> Array:
    """View an array (..., 2) as complex numbers (...); a copy if the two parts are not adjacent."""
    if pairs.strides[-1] != pairs.itemsize:
        pairs = xp.ascontiguousarray(pairs)
    kind = xp.complex64 if pairs.dtype == xp.float32 else xp.complex128
    return pairs.view(kind)[..., 0]


# Not in the registry, whose tests use real arrays; tests/ops/test_fft.py tests these.

view_as_complex_p: Linear = linear(
    "view_as_complex",
    _as_complex,
    (lambda g, x: view_as_real_p(conj_p(g)),),
    register=False,
    write_back=lambda x, view, assign: view_as_real_p(view),
)
view_as_complex_p.describe("re + i im", "re(g), -im(g)")
view_as_real_p: Linear = linear(
    "view_as_real",
    _as_pairs,
    (lambda g, x: conj_p(view_as_complex_p(g)),),
    register=False,
    write_back=lambda x, view, assign: view_as_complex_p(view),
)
view_as_real_p.describe("(re, im)", "g_re - i g_im")
conj_p: Linear = linear("conj", lambda xp, x: xp.conj(x), (lambda g, x: conj_p(g),), register=False)
conj_p.describe("re - i im", "conj(g)")
PRIMITIVES.update({prim.name: prim for prim in (view_as_complex_p, view_as_real_p, conj_p)})


def is_complex(x: Array) -> bool:
    """Whether the dtype is complex."""
    return bool(x.dtype.kind == "c")


def view_as_complex(x: Array) -> Array:
    """Pairs (..., 2) of real and imaginary part as complex numbers (...)."""
    return view_as_complex_p(x)


def view_as_real(x: Array) -> Array:
    """Complex numbers (...) as pairs (..., 2) of real and imaginary part."""
    return view_as_real_p(x)


def complex(real: Array, imag: Array) -> Array:
    """real + i imag, from two real tensors that broadcast; gradients flow to both."""
    shape = np.broadcast_shapes(tuple(real.shape), tuple(imag.shape))
    parts = [part if tuple(part.shape) == shape else broadcast_to_p(part, shape=shape) for part in (real, imag)]
    return view_as_complex_p(stack(parts, -1))


def real(x: Array) -> Array:
    """Real part; a real tensor is returned unchanged."""
    return view_as_real_p(x)[..., 0] if is_complex(x) else x


def imag(x: Array) -> Array:
    """Imaginary part of a complex tensor."""
    if is_complex(x):
        return view_as_real_p(x)[..., 1]
    return PRIMITIVES["where"](np.False_, x, np.zeros((), x.dtype))  # 0 for infinite numbers too


def conj(x: Array) -> Array:
    """Complex conjugate."""
    return conj_p(x) if is_complex(x) else x


def _squared_size(x: Array) -> Array:
    """|x|**2, computed without a square root for complex numbers."""
    return real(x * conj_p(x)) if is_complex(x) else x * x


def _adjoint(x: Array) -> Array:
    """The conjugate transpose of (..., n, m)."""
    return conj(swap_last(x))


all_take_complex(globals())
