"""Five hand-written backward passes, and typical mistakes in them.

A `Broken` replaces or drops one line of a correct derivation. A test checks the score of `check_my_backward` over all of
them, and the table in the documentation is made from them.
"""

# ruff: noqa: RET504, E501 - a forward pass names its loss before it returns it; each broken line is on one line
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glassgrad.verify import edits


@dataclass(frozen=True)
class Family:
    """A forward pass, inputs for it, and a right derivation."""

    name: str
    forward: object
    inputs: dict
    derivation: str


@dataclass(frozen=True)
class Broken:
    """A line made wrong. `blamed` is the line that has to be named, if it is not the changed one."""

    family: str
    right: str
    wrong: str
    kind: str
    blamed: str = ""


rng = np.random.default_rng(42)


# --- the names MLP, step by step ----------------------------------------------------------------


def names_mlp(C, W1, b1, gain, shift, W2, b2, contexts, targets):
    n = contexts.shape[0]
    emb = C[contexts]
    flat = emb.reshape(n, -1)
    pre = flat @ W1 + b1
    mean = pre.sum(0, keepdims=True) / n
    diff = pre - mean
    diff2 = diff**2
    var = diff2.sum(0, keepdims=True) / (n - 1)
    inv = (var + 1e-5) ** -0.5
    hat = diff * inv
    act = gain * hat + shift
    h = act.tanh()
    logits = h @ W2 + b2
    top = logits.amax(1, keepdims=True)
    shifted = logits - top
    counts = shifted.exp()
    total = counts.sum(1, keepdims=True)
    share = total**-1
    probs = counts * share
    logprobs = probs.log()
    loss = -logprobs[np.arange(n), targets].mean()
    return loss


NAMES = Family(
    "names MLP",
    names_mlp,
    {
        "C": rng.normal(size=(9, 4)),
        "W1": rng.normal(size=(12, 6)) * 0.3,
        "b1": rng.normal(size=6),
        "gain": rng.normal(size=(1, 6)) + 1,
        "shift": rng.normal(size=(1, 6)),
        "W2": rng.normal(size=(6, 9)) * 0.5,
        "b2": rng.normal(size=9),
        "contexts": rng.integers(0, 9, (8, 3)),
        "targets": rng.integers(0, 9, 8),
    },
    """
dlogprobs = np.zeros_like(logprobs)
dlogprobs[np.arange(n), targets] = -1.0 / n
dprobs = dlogprobs / probs
dshare = (dprobs * counts).sum(1, keepdims=True)
dtotal = -dshare * total**-2
dcounts = dprobs * share
dcounts += np.ones_like(counts) * dtotal
dshifted = dcounts * counts
dtop = -dshifted.sum(1, keepdims=True)
dlogits = dshifted.copy()
dlogits += (logits == top) * dtop
dh = dlogits @ W2.T
dW2 = h.T @ dlogits
db2 = dlogits.sum(0)
dact = dh * (1.0 - h**2)
dgain = (dact * hat).sum(0, keepdims=True)
dshift = dact.sum(0, keepdims=True)
dhat = dact * gain
dinv = (dhat * diff).sum(0, keepdims=True)
dvar = dinv * -0.5 * (var + 1e-5) ** -1.5
ddiff2 = np.ones_like(diff2) * dvar / (n - 1)
ddiff = dhat * inv
ddiff += ddiff2 * 2 * diff
dmean = -ddiff.sum(0, keepdims=True)
dpre = ddiff.copy()
dpre += np.ones_like(pre) * dmean / n
dflat = dpre @ W1.T
dW1 = flat.T @ dpre
db1 = dpre.sum(0)
demb = dflat.reshape(emb.shape)
dC = np.zeros_like(C)
np.add.at(dC, contexts, demb)
""",
)


# --- softmax and cross-entropy in a few lines -----------------------------------------------------


def softmax_loss(x, w, b, y):
    n = x.shape[0]
    logits = x @ w + b
    e = (logits - logits.detach().amax(1, keepdims=True)).exp()
    s = e.sum(1, keepdims=True)
    p = e / s
    loss = -(y * p.log()).sum() / n
    return loss


SOFTMAX = Family(
    "softmax",
    softmax_loss,
    {
        "x": rng.normal(size=(6, 5)),
        "w": rng.normal(size=(5, 4)),
        "b": rng.normal(size=4),
        "y": np.eye(4)[rng.integers(0, 4, 6)],
    },
    """
dp = -y / p / n
ds = -(dp * e).sum(1, keepdims=True) / s**2
de = dp / s + ds
dlogits = de * e
dx = dlogits @ w.T
dw = x.T @ dlogits
db = dlogits.sum(0)
""",
)

# The same forward pass, with the two simplifications that one makes at the end.
SOFTMAX_SHORT = Family(
    "softmax, simplified",
    softmax_loss,
    SOFTMAX.inputs,
    """
dp = -y / p / n
dlogits = p * (dp - (dp * p).sum(1, keepdims=True))
dx = dlogits @ w.T
dw = x.T @ dlogits
db = dlogits.sum(0)
""",
)


# --- batch norm, as in the paper ----------------------------------------------------------------


def batch_norm(x, gamma, beta, r):
    n = x.shape[0]
    mu = x.mean(0)
    xc = x - mu
    var = (xc**2).sum(0) / (n - 1)
    std = (var + 1e-5).sqrt()
    xhat = xc / std
    y = gamma * xhat + beta
    loss = (y * r).sum()
    return loss


BATCH_NORM = Family(
    "batch norm",
    batch_norm,
    {
        "x": rng.normal(size=(7, 3)),
        "gamma": rng.normal(size=3) + 1,
        "beta": rng.normal(size=3),
        "r": rng.normal(size=(7, 3)),
    },
    """
dy = r
dbeta = dy.sum(axis=0)
dgamma = (dy * xhat).sum(axis=0)
dxhat = dy * gamma
dstd = (dxhat * -xc / std**2).sum(axis=0)
dvar = dstd / (2 * std)
dxc = dxhat / std
dxc += dvar * 2 * xc / (n - 1)
dmu = -dxc.sum(axis=0)
dx = dxc + dmu / n
""",
)

BATCH_NORM_SHORT = Family(
    "batch norm in one line",
    batch_norm,
    BATCH_NORM.inputs,
    """
dy = r
dbeta = dy.sum(0)
dgamma = (dy * xhat).sum(0)
dx = gamma / (n * std) * (n * dy - dy.sum(0) - n / (n - 1) * xhat * (dy * xhat).sum(0))
""",
)


# --- layer norm ---------------------------------------------------------------------------------


def layer_norm(x, w, b, r):
    d = x.shape[-1]
    mu = x.sum(-1, keepdims=True) / d
    xc = x - mu
    var = (xc * xc).sum(-1, keepdims=True) / d
    rstd = (var + 1e-5) ** -0.5
    xhat = xc * rstd
    y = xhat * w + b
    loss = (y * r).sum()
    return loss


LAYER_NORM = Family(
    "layer norm",
    layer_norm,
    {
        "x": rng.normal(size=(2, 4, 5)),
        "w": rng.normal(size=5) + 1,
        "b": rng.normal(size=5),
        "r": rng.normal(size=(2, 4, 5)),
    },
    """
dy = r
db = dy.sum(axis=(0, 1))
dw = (dy * xhat).sum(axis=(0, 1))
dxhat = dy * w
drstd = (dxhat * xc).sum(-1, keepdims=True)
dvar = drstd * -0.5 * rstd**3
dxc = dxhat * rstd + dvar * 2 * xc / d
dmu = -dxc.sum(-1, keepdims=True)
dx = dxc
dx = dx + dmu / d
""",
)


# --- attention ----------------------------------------------------------------------------------


def attention(x, wq, wk, wv, wo, r):
    e = wq.shape[1]
    q = x @ wq
    k = x @ wk
    v = x @ wv
    z = q @ k.swapaxes(-1, -2)
    zs = z * e**-0.5
    p = zs.softmax(-1)
    o = p @ v
    y = o @ wo
    loss = (y * r).sum()
    return loss


ATTENTION = Family(
    "attention",
    attention,
    {
        "x": rng.normal(size=(2, 4, 6)),
        "wq": rng.normal(size=(6, 3)) * 0.5,
        "wk": rng.normal(size=(6, 3)) * 0.5,
        "wv": rng.normal(size=(6, 3)) * 0.5,
        "wo": rng.normal(size=(3, 6)) * 0.5,
        "r": rng.normal(size=(2, 4, 6)),
    },
    """
dy = r
do = dy @ wo.T
dwo = (o.swapaxes(-1, -2) @ dy).sum(0)
dp = do @ v.swapaxes(-1, -2)
dv = p.swapaxes(-1, -2) @ do
dzs = p * (dp - (dp * p).sum(-1, keepdims=True))
dz = dzs * e**-0.5
dq = dz @ k
dk = dz.swapaxes(-1, -2) @ q
dwq = (x.swapaxes(-1, -2) @ dq).sum(0)
dwk = (x.swapaxes(-1, -2) @ dk).sum(0)
dwv = (x.swapaxes(-1, -2) @ dv).sum(0)
dx = dq @ wq.T
dx += dk @ wk.T
dx += dv @ wv.T
""",
)

FAMILIES = {
    family.name: family
    for family in (NAMES, SOFTMAX, SOFTMAX_SHORT, BATCH_NORM, BATCH_NORM_SHORT, LAYER_NORM, ATTENTION)
}

M, S, S2, B, B2, L, A = FAMILIES

BROKEN = [
    # the names MLP
    Broken(M, "dlogprobs[np.arange(n), targets] = -1.0 / n", "dlogprobs[np.arange(n), targets] = -1.0", edits.SCALE),
    Broken(M, "dlogprobs[np.arange(n), targets] = -1.0 / n", "dlogprobs[np.arange(n), targets] = 1.0 / n", edits.SIGN),
    Broken(M, "dshare = (dprobs * counts).sum(1, keepdims=True)", "dshare = dprobs * counts", edits.SUM),
    Broken(M, "dshare = (dprobs * counts).sum(1, keepdims=True)", "dshare = (dprobs * counts).sum(0, keepdims=True)", edits.WRONG_SUM),
    Broken(M, "dtotal = -dshare * total**-2", "dtotal = dshare * total**-2", edits.SIGN),
    Broken(M, "dtotal = -dshare * total**-2", "dtotal = -dshare * total**-1", edits.CONSTANT),
    Broken(M, "dcounts += np.ones_like(counts) * dtotal", "", edits.ACCUMULATION, "dcounts = dprobs * share"),
    Broken(M, "dcounts += np.ones_like(counts) * dtotal", "dcounts = np.ones_like(counts) * dtotal", edits.ACCUMULATION),
    Broken(M, "dh = dlogits @ W2.T", "dh = dlogits @ W2", edits.TRANSPOSE),
    Broken(M, "dW2 = h.T @ dlogits", "dW2 = dlogits.T @ h", edits.TRANSPOSE),
    Broken(M, "db2 = dlogits.sum(0)", "db2 = dlogits", edits.SUM),
    Broken(M, "dact = dh * (1.0 - h**2)", "dact = dh * (1.0 - h)", edits.FACTOR),
    Broken(M, "dact = dh * (1.0 - h**2)", "dact = dh * (1.0 + h**2)", edits.SIGN),
    Broken(M, "dact = dh * (1.0 - h**2)", "dact = dh * (1.0 - act**2)", edits.VARIABLE),
    Broken(M, "dgain = (dact * hat).sum(0, keepdims=True)", "dgain = dact * hat", edits.SUM),
    Broken(M, "dhat = dact * gain", "dhat = dact", edits.FACTOR),
    Broken(M, "dvar = dinv * -0.5 * (var + 1e-5) ** -1.5", "dvar = dinv * 0.5 * (var + 1e-5) ** -1.5", edits.SIGN),
    Broken(M, "ddiff2 = np.ones_like(diff2) * dvar / (n - 1)", "ddiff2 = np.ones_like(diff2) * dvar / n", edits.N_MINUS_1),
    Broken(M, "ddiff += ddiff2 * 2 * diff", "ddiff = ddiff2 * 2 * diff", edits.ACCUMULATION),
    Broken(M, "ddiff += ddiff2 * 2 * diff", "ddiff += ddiff2 * diff", edits.CONSTANT),
    Broken(M, "dpre += np.ones_like(pre) * dmean / n", "dpre += np.ones_like(pre) * dmean", edits.SCALE),
    Broken(M, "dpre += np.ones_like(pre) * dmean / n", "", edits.ACCUMULATION, "dpre = ddiff.copy()"),
    Broken(M, "db2 = dlogits.sum(0)", "db2 = dlogits.mean(0)", edits.EXTRA_SCALE),
    Broken(M, "np.add.at(dC, contexts, demb)", "dC[contexts] = demb", edits.ACCUMULATION),
    Broken(M, "np.add.at(dC, contexts, demb)", "dC[contexts] += demb", edits.ACCUMULATION),
    # softmax
    Broken(S, "dp = -y / p / n", "dp = -y / p", edits.SCALE),
    Broken(S, "ds = -(dp * e).sum(1, keepdims=True) / s**2", "ds = -(dp * e) / s**2", edits.SUM),
    Broken(S, "de = dp / s + ds", "de = dp / s", edits.ACCUMULATION),
    Broken(S, "de = dp / s + ds", "de = dp / s - ds", edits.SIGN),
    Broken(S, "dlogits = de * e", "dlogits = de", edits.FACTOR),
    Broken(S2, "dlogits = p * (dp - (dp * p).sum(1, keepdims=True))", "dlogits = p * (dp - dp * p)", edits.SUM),
    Broken(S2, "dlogits = p * (dp - (dp * p).sum(1, keepdims=True))", "dlogits = p * (dp - dp.sum(1, keepdims=True))", edits.FACTOR),
    Broken(S2, "dw = x.T @ dlogits", "dw = x.T @ dlogits / n", edits.EXTRA_SCALE),
    # batch norm
    Broken(B, "dbeta = dy.sum(axis=0)", "dbeta = dy.mean(axis=0)", edits.EXTRA_SCALE),
    Broken(B, "dgamma = (dy * xhat).sum(axis=0)", "dgamma = (dy * x).sum(axis=0)", edits.VARIABLE),
    Broken(B, "dstd = (dxhat * -xc / std**2).sum(axis=0)", "dstd = (dxhat * -xc / std**2)", edits.SUM),
    Broken(B, "dxc += dvar * 2 * xc / (n - 1)", "dxc += dvar * 2 * xc / n", edits.N_MINUS_1),
    Broken(B, "dx = dxc + dmu / n", "dx = dxc + dmu", edits.SCALE),
    Broken(B, "dx = dxc + dmu / n", "dx = dxc", edits.ACCUMULATION),
    Broken(B2, "dx = gamma / (n * std) * (n * dy - dy.sum(0) - n / (n - 1) * xhat * (dy * xhat).sum(0))",
           "dx = gamma / (n * std) * (n * dy - dy.sum(0) - xhat * (dy * xhat).sum(0))", edits.N_MINUS_1),
    Broken(B2, "dx = gamma / (n * std) * (n * dy - dy.sum(0) - n / (n - 1) * xhat * (dy * xhat).sum(0))",
           "dx = gamma / std * (n * dy - dy.sum(0) - n / (n - 1) * xhat * (dy * xhat).sum(0))", edits.SCALE),
    # layer norm
    Broken(L, "dw = (dy * xhat).sum(axis=(0, 1))", "dw = (dy * xhat).sum(axis=0)", edits.WRONG_SUM),
    Broken(L, "drstd = (dxhat * xc).sum(-1, keepdims=True)", "drstd = dxhat * xc", edits.SUM),
    Broken(L, "dvar = drstd * -0.5 * rstd**3", "dvar = drstd * -0.5 * rstd**2", edits.CONSTANT),
    Broken(L, "dxc = dxhat * rstd + dvar * 2 * xc / d", "dxc = dxhat * rstd + dvar * 2 * xc", edits.SCALE),
    Broken(L, "dxc = dxhat * rstd + dvar * 2 * xc / d", "dxc = dxhat * rstd + dvar * 2 * xc / (d - 1)", edits.N_MINUS_1),
    Broken(L, "dmu = -dxc.sum(-1, keepdims=True)", "dmu = dxc.sum(-1, keepdims=True)", edits.SIGN),
    Broken(L, "dx = dx + dmu / d", "dx += dx + dmu / d", edits.UPDATE),
    # attention
    Broken(A, "do = dy @ wo.T", "do = dy @ wo", edits.TRANSPOSE),
    Broken(A, "dwo = (o.swapaxes(-1, -2) @ dy).sum(0)", "dwo = o.swapaxes(-1, -2) @ dy", edits.SUM),
    Broken(A, "dv = p.swapaxes(-1, -2) @ do", "dv = p @ do", edits.TRANSPOSE),
    Broken(A, "dzs = p * (dp - (dp * p).sum(-1, keepdims=True))", "dzs = p * (dp + (dp * p).sum(-1, keepdims=True))", edits.SIGN),
    Broken(A, "dzs = p * (dp - (dp * p).sum(-1, keepdims=True))", "dzs = p * (dp - (dp * p).sum(-2, keepdims=True))", edits.WRONG_SUM),
    Broken(A, "dz = dzs * e**-0.5", "dz = dzs", edits.FACTOR),
    Broken(A, "dz = dzs * e**-0.5", "dz = dzs * e**0.5", edits.SIGN),
    Broken(A, "dk = dz.swapaxes(-1, -2) @ q", "dk = dz @ q", edits.TRANSPOSE),
    Broken(A, "dx += dk @ wk.T", "dx = dk @ wk.T", edits.ACCUMULATION),
    Broken(A, "dx += dv @ wv.T", "", edits.ACCUMULATION, "dx += dk @ wk.T"),
]  # fmt: skip  # a table


def broken_source(case: Broken) -> tuple[str, int]:
    """Return the derivation with the line replaced, and the number of the line that has to be blamed."""
    text = FAMILIES[case.family].derivation
    assert text.count(case.right + "\n") == 1, case.right
    text = text.replace(case.right + "\n", case.wrong + "\n" if case.wrong else "")
    lines = text.splitlines()
    return text, lines.index(case.blamed or case.wrong) + 1
