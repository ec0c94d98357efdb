"""tanh, sigmoid, erf and erfc, each from one exponential."""

from __future__ import annotations

from glassgrad.compile.llvm.math.common import clamp, coefficients, copysign, inverse_estimate, polynomial
from glassgrad.compile.llvm.math.exponential import exp, expm1_within
from glassgrad.compile.llvm.module.ir import Builder, Value

# tanh is 1 to the last bit beyond these.
_TANH_LIMIT = {"f32": 10.0, "f64": 20.0}

# W(a) = -log(erfc(a)) / a, so that erf(a) = -expm1(-a W(a)) without cancellation anywhere.
_ERF_ALL_32 = coefficients(
    """
    1.128379225730896 0.6366150975227356 0.10281781107187271 -0.019283931702375412 3.569772525224835e-05
    0.0015232325531542301 -0.0005880263051949441 0.000118982010462787 -1.3163437870389316e-05 6.259832616706262e-07
    """
)
_ERF_NEAR_64 = coefficients(
    """
    1.1283791670955126 0.6366197723675789 0.1027726033022684 -0.019128447020741516 -0.00020919444147803065
    0.0016962039784922604 -0.0005901108411315391 2.5817703514799422e-05 6.466743880594347e-05 -3.0079480177516402e-05
    3.904533494193131e-06 2.385075490995774e-06 -1.5428990240166454e-06 4.088676262387739e-07 -4.5746983483154684e-08
    """
)
# In powers of a - 2.5, for a from 1 to 4; beyond, erf is so close to 1 that the extrapolation error is negligible.
_ERF_FAR_64 = coefficients(
    """
    3.1227261090909058 0.891981856758192 0.02076475070638173 -0.003962671187080259 0.0007188777152081159
    -0.00011917806197701978 1.6858902723925617e-05 -1.6412236578935918e-06 -5.1103037057078175e-08
    8.282543301876931e-08 -2.808768089344148e-08 6.8661657855000954e-09 -1.3401979277044343e-09 1.9673422816753736e-10
    -1.4669421623520782e-11 -2.2816191833338488e-12 1.8800129656554782e-12 -8.782803156538369e-13
    1.7095538194386054e-13
    """
)
_ERF_LIMIT = {"f32": 3.95, "f64": 6.0}

# erfc(a) exp(a^2) (1 + 2 a) in powers of (a - k) / (a + k): the point k and the coefficients.
_ERFC = {
    "f32": (
        2.0,
        coefficients(
            """
            1.2769783735275269 -0.0927639976143837 -0.16603076457977295 0.164055734872818 -0.054209545254707336
            -0.00806300900876522 0.008646431379020214 0.0013236594386398792 -0.0012435454409569502
            -0.0004114409675821662
            """
        ),
    ),
    "f64": (
        4.0,
        coefficients(
            """
            1.2329951186255526 -0.13962111684056291 0.015379652102605485 0.06809705425473818 -0.10103906603554398
            0.09373283499692942 -0.06633036582824058 0.03716751555642101 -0.016197733882950933 0.005031969852196897
            -0.0007577744083664234 -0.00019925628048314146 0.00015062615138765922 -2.4399625203261837e-05
            -1.1233453219579956e-05 5.708197731843915e-06 3.1225470644176996e-07 -8.195292371218927e-07
            5.6703369808865984e-08 1.0160760455270526e-07 -8.63315299675942e-09 -8.593988046161739e-09
            """
        ),
    ),
}
_ERFC_LIMIT = {"f32": 10.2, "f64": 27.5}


def tanh(b: Builder, x: Value) -> Value:
    """Hyperbolic tangent: e / (e + 2) with e = expm1(2 a), for a = |x|."""
    a = clamp(b, b.call("fabs", x), None, _TANH_LIMIT[x.kind])
    e = expm1_within(b, b.fadd(a, a))
    return copysign(b, b.fdiv(e, b.fadd(e, b.like(2, x))), x)


def sigmoid(b: Builder, x: Value) -> Value:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which never overflows."""
    e = exp(b, b.fneg(b.call("fabs", x)))
    one = b.like(1, x)
    top = b.select(b.compare("oge", x, b.like(0, x)), one, e)
    return b.fdiv(top, b.fadd(one, e))


def erf(b: Builder, x: Value) -> Value:
    """Error function."""
    a = clamp(b, b.call("fabs", x), None, _ERF_LIMIT[x.kind])
    if x.kind == "f32":
        w = polynomial(b, a, _ERF_ALL_32)
    else:
        near = polynomial(b, a, _ERF_NEAR_64)
        far = polynomial(b, b.fsub(a, b.like(2.5, a)), _ERF_FAR_64)
        w = b.select(b.compare("ult", a, b.like(1, a)), near, far)
    size = b.fneg(expm1_within(b, b.fneg(b.fmul(a, w))))
    return copysign(b, size, x)


def erfc_from(b: Builder, x: Value, decay: Value) -> Value:
    """Complement of the error function: decay = exp(-x^2) times a smooth factor for a = |x|.

    The rounding error of the square is corrected to first order.
    """
    a = clamp(b, b.call("fabs", x), None, _ERFC_LIMIT[x.kind])
    point, coefficients = _ERFC[x.kind]
    # One estimate for two quotients, 1 / ((a + k) (1 + 2 a)); each is then corrected by its remainder.
    above, below = b.fadd(a, b.like(point, a)), b.fma(a, b.like(2, a), b.like(1, a))
    inverse = inverse_estimate(b, b.fmul(above, below))
    numerator, one_above = b.fsub(a, b.like(point, a)), b.fmul(below, inverse)
    t = b.fmul(numerator, one_above)
    t = b.fma(b.fma(b.fneg(t), above, numerator), one_above, t)
    one_below = b.fmul(above, inverse)
    one_below = b.fma(b.fma(b.fneg(one_below), below, b.like(1, a)), one_below, one_below)
    smooth = b.fmul(polynomial(b, t, coefficients), one_below)
    lost = b.fma(b.fneg(a), a, b.fmul(a, a))
    tail = b.fmul(b.fma(decay, lost, decay), smooth)
    positive = b.compare("uge", x, b.like(0, x))
    return b.select(positive, tail, b.fsub(b.like(2, x), tail))
