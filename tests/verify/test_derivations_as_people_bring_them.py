"""Derivations from tutorials and notebooks: PyTorch's words, names of gradients, kinks, aliases, pairs."""

# ruff: noqa: RET504 - a forward pass names its loss before it returns it
from __future__ import annotations

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.verify import check_my_backward, edits, gradcheck

RNG = np.random.default_rng(0)
INPUTS = {
    "x": RNG.normal(size=(4, 3)),
    "w": RNG.normal(size=(3, 2)),
    "b": RNG.normal(size=2),
    "y": RNG.normal(size=(4, 2)),
}
LABELS = {"z": RNG.normal(size=(5, 4)), "y": RNG.integers(0, 4, 5)}


def layer(x, w, b, y):
    n = x.shape[0]
    h = x @ w + b
    a = h.relu()
    loss = ((a - y) ** 2).sum() / n
    return loss


def twice(x, w):
    h = x @ w
    a = h * h
    c = h.exp()
    loss = (a + c).sum()
    return loss


def classes(z, y):
    n = z.shape[0]
    top = z.amax(1, keepdims=True)
    e = (z - top).exp()
    p = e / e.sum(1, keepdims=True)
    loss = -p.log()[np.arange(n), y].sum() / n
    return loss


def check(text, forward=layer, inputs=INPUTS):
    if forward is twice:
        inputs = {name: INPUTS[name] for name in ("x", "w")}
    return check_my_backward(text, forward, inputs, show=False)


def test_pytorchs_words():
    report = check(
        """
        import torch
        da = 2 * (a - y) / n
        dh = da.clone()
        dh[h <= 0] = 0
        dw = x.t().mm(dh)
        db = dh.sum(0, keepdim=True).view(2)
        dx = torch.zeros_like(x)
        dx += dh @ w.T
        """
    )
    assert report, str(report)
    assert check("dz = (F.softmax(z, 1) - F.one_hot(y, num_classes=z.shape[1])) / n", classes, LABELS)


@pytest.mark.parametrize("spelling", ["d{}", "d_{}", "dL_d{}", "dLd{}", "dloss_d{}", "grad_{}", "{}_grad"])
def test_names_of_gradients(spelling):
    a, h, w = (spelling.format(name) for name in "ahw")
    report = check(f"{a} = 2 * (a - y) / n\n{h} = {a} * (h > 0)\n{w} = x.T @ {h} / n")
    assert [line.comparison.name for line in report.lines] == [a, h, w]
    assert (report.wrong_line, report.wrong_name, report.diagnosis.kind) == (3, w, edits.EXTRA_SCALE)


def test_a_cell_of_a_notebook():
    cell = '''
In [7]: %matplotlib inline
>>> from torch.nn import functional as F
>>> def backward(a, y, n):
...     """Mine."""
...     da = 2 * (a - y) / n
...     cmp("a", da, a)
...     return da
'''
    assert check(cell).lines[0].line == 6
    with pytest.raises(errors.ArgumentError, match=r"line 2 of the derivation is not Python.*\n *da = = 3"):
        check("x\nda = = 3")
    space = {}
    exec("def made(): da = 1", space)  # noqa: S102 - a function that no file holds
    with pytest.raises(errors.KindError, match=r"source of made\(\) cannot be read"):
        check(space["made"])


def test_modules_and_tensors_of_pytorch_in_forward_and_derivation():
    torch = pytest.importorskip("torch", reason="the derivation is in its words")
    labels = torch.tensor(LABELS["y"])

    def forward(z):
        loss = torch.nn.functional.cross_entropy(z, torch.as_tensor(LABELS["y"]))
        return loss

    def derivation():
        dz = torch.softmax(z, 1)
        dz[range(5), labels] -= 1
        dz /= len(labels)

    report = check_my_backward(derivation, forward, [torch.tensor(LABELS["z"])], show=False)
    assert report, str(report)


z = None  # what a notebook's derivation reads is a variable of the forward pass


def test_a_kink_is_not_a_mistake_and_what_follows_is_judged_by_it():
    inputs = {**INPUTS, "b": np.zeros(2), "x": np.where(np.arange(4)[:, None] == 1, 0, INPUTS["x"])}
    lines = "da = 2 * (a - y) / n\ndh = da * (h {} 0)\ndw = x.T @ dh\ndb = dh.sum(0)\ndx = dh @ w.T"
    assert check(lines.format(">"), layer, inputs)
    report = check(lines.format(">="), layer, inputs)
    assert report, str(report)
    assert "kink: 2 entries of h are where relu has no derivative" in str(report)
    assert check("da = 2 * (a - y) / n\ndh = da * (h >= 0) * 2", layer, inputs).wrong_line == 2


def test_ties_of_a_maximum():
    def forward(x):
        top = x.amax(1)
        loss = (top * np.array([1.0, 3.0])).sum()
        return loss

    inputs = {"x": np.array([[2.0, 2.0, 1.0], [0.0, 5.0, 4.0]])}
    lines = "dtop = np.array([1.0, 3.0])\nm = x == x.max(1, keepdims=True)\n"
    report = check(lines + "dx = m * dtop[:, None]", forward, inputs)
    assert report.diagnosis.kind == edits.TIES, str(report)
    assert check(lines + "dx = m / m.sum(1, keepdims=True) * dtop[:, None]", forward, inputs)
    first = check(lines + "dx = np.zeros_like(x)\ndx[[0, 1], x.argmax(1)] = dtop", forward, inputs)
    assert first, str(first)
    assert "amax" in first.lines[-1].kink or "max" in first.lines[-1].kink


@pytest.mark.parametrize(
    ("text", "forward", "line", "kind"),
    [
        ("da = 2 * (a - y) / n\ndh = da * (h > 0)\ndb = dh.sum(0, keepdims=True)", layer, 3, edits.SHAPE),
        ("da = 2 * (a - y) / n\ndh = da * (h > 0)\ndw = (x.T @ dh).ravel()", layer, 3, edits.SHAPE),
        ("da = 2 * (a - y) / n\ndh = da * (h > 0)\ndb = dh", layer, 3, edits.SUM),
        ("da = 2 * (a - y) / n\ndh = da * (h > 0)\ndw = dh.T @ x", layer, 3, edits.TRANSPOSE),
        ("da = 2 * (a - y)", layer, 1, edits.SCALE),
        ("dh = 2 * h\ndh -= c", twice, 2, edits.MINUS),
        ("dh = 2 * h", twice, 1, edits.ACCUMULATION),
        ("dh = 2 * h + c\nd2 = dh\nd2 += 1\ndw = x.T @ dh", twice, 3, edits.ALIAS),
        ("dh = torch.clone(2 * h + c)\nd2 = dh.view(8)\nd2 += 1", twice, 3, edits.ALIAS),
    ],
)
def test_mistakes_are_named(text, forward, line, kind):
    report = check(text, forward)
    assert (report.wrong_line, report.diagnosis.kind) == (line, kind), str(report)


# --- functions that return a loss and its gradient ------------------------------------------------


def softmax_loss(w, x, y, factor=1.0):
    n = len(x)
    z = x @ w
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(n), y]).mean()
    p[np.arange(n), y] -= 1
    return loss, factor * x.T @ p / n


def with_tensors(x):
    dx = 3 * x
    return (x**2).sum(), dx


def test_gradcheck_of_a_loss_with_its_gradient():
    w, x, y = RNG.normal(size=(3, 4)), INPUTS["x"], np.array([0, 1, 3, 3])
    assert gradcheck(softmax_loss, w, x, y).kind == "right"
    found = gradcheck(lambda w, x, y: softmax_loss(w, x, y, 2.0), w, x, y)
    assert (found.kind, [row.name for row in found.rows]) == ("wrong", ["w"])
    assert "factor 2" in found.why
    assert gradcheck(with_tensors, gg.tensor([1.0, 2.0])).kind == "wrong"
    named = gradcheck(lambda a, b: (float((a * b).sum()), {"db": a, "da": b}), w, 2 * w)
    assert (named.kind, len(named.rows)) == ("right", 2)
    shaped = gradcheck(lambda x: (float((x**2).sum()), np.ones((1, 3)) * 2 * np.asarray(x)), np.ones(3))
    assert "shape (1, 3) for x of shape (3,)" in shaped.why


def test_gradcheck_of_a_loss_with_other_results():
    """Predictions have an argument's shape too; nothing says that they were a gradient."""
    assert gradcheck(lambda x: ((x**2).sum(), x.tanh()), np.ones(3)).kind == "right"
