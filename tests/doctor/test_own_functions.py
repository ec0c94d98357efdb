"""A backward pass written by hand is compared with differences of its forward pass, where both should agree."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.script import run_script

TITLE = "backward does not fit its forward"
HEADS = {
    "ours": "import glassgrad as torch\nfrom glassgrad import nn\n",
    "torch": "import torch\nfrom torch import nn\n",
}
BODY = """
torch.manual_seed(0)

class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x{more}):
        {forward}

    @staticmethod
    def backward(ctx, g):
        {backward}


layer = nn.Linear(5, 5)
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-5)
inputs, weight = torch.randn(16, 5) * 3, torch.randn(5, 5, requires_grad=True)
for _ in range(12):
    optimizer.zero_grad()
    loss = (Own.apply(layer(inputs){given}) - inputs).square().mean()
    loss.backward()
    optimizer.step()
"""
SAVED = "ctx.save_for_backward(x); return "
WRONG = {
    "a factor is missing": (SAVED + "x * x", "x, = ctx.saved_tensors; return g * x"),
    "the sign is turned": (SAVED + "torch.cos(x)", "x, = ctx.saved_tensors; return g * torch.sin(x)"),
    "right near 0 only": (SAVED + "torch.tanh(x)", "x, = ctx.saved_tensors; return g * (1 - x * x)"),
    "the inner derivative is missing": (
        SAVED + "torch.exp(-x * x)",
        "x, = ctx.saved_tensors; return g * torch.exp(-x * x)",
    ),
    "rows depend on each other": (
        "y = torch.softmax(x, 1); ctx.save_for_backward(y); return y",
        "y, = ctx.saved_tensors; return g * y * (1 - y)",
    ),
}
RIGHT = {
    "the derivative": (SAVED + "x * x", "x, = ctx.saved_tensors; return 2 * g * x"),
    "with a kink": (SAVED + "x.clamp(min=0)", "x, = ctx.saved_tensors; return g * (x > 0)"),
    "rows depend on each other": (
        "y = torch.softmax(x, 1); ctx.save_for_backward(y); return y",
        "y, = ctx.saved_tensors; return y * (g - (g * y).sum(1, keepdim=True))",
    ),
    "a reversed gradient": ("return x.view_as(x)", "return -0.5 * g"),
    "a clipped gradient": ("return x * 1.0", "return g.clamp(-0.01, 0.01)"),
    "through a rounding": ("return torch.round(x)", "return g"),
    "through a step": (SAVED + "(x > 0).float()", "x, = ctx.saved_tensors; return g / (1 + x * x)"),
    "through a clamp": ("return x.clamp(-1, 1)", "return g"),
    "signs times a mean": ("return torch.sign(x) * x.abs().mean()", "return g"),
    "random": (SAVED + "x * (torch.rand(16, 5) > 0.5)", "x, = ctx.saved_tensors; return g"),
    "a rectifier that lets only positive gradients pass": (
        SAVED + "x * (x > 0)",
        "x, = ctx.saved_tensors; return g.clamp(min=0) * (x > 0)",
    ),
}
PRODUCT = ", weight"


@pytest.fixture(params=sorted(HEADS))
def library(request: Any) -> str:
    if request.param == "torch":
        pytest.importorskip("torch", reason="PyTorch is the library of the script")
    return str(request.param)


def findings(folder: Path, library: str, forward: str, backward: str, more: str = "") -> list[Finding]:
    body = BODY.format(forward=forward, backward=backward, more=more, given=more)
    path = folder / "script.py"
    path.write_text(HEADS[library] + body)
    watched, ended = run_script(path)
    assert ended
    return [one for each in watched for one in each.findings if one.rule == TITLE]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_derivative_is_named_with_its_lines(tmp_path: Path, library: str, name: str) -> None:
    (found,) = findings(tmp_path, library, *WRONG[name])
    assert found.severity == "error"
    assert found.where.endswith("script.py:12")
    assert "script.py:13" in found.what
    assert "Own" in found.what


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_or_meant_is_not(tmp_path: Path, library: str, name: str) -> None:
    assert findings(tmp_path, library, *RIGHT[name]) == []


def test_gradients_in_the_wrong_order(tmp_path: Path, library: str) -> None:
    forward = "ctx.save_for_backward(x, weight); return x @ weight"
    right = "x, weight = ctx.saved_tensors; return g @ weight.T, x.T @ g"
    wrong = "x, weight = ctx.saved_tensors; return g @ weight, x.T @ g"
    (found,) = findings(tmp_path, library, forward, wrong, PRODUCT)
    assert "operand 0" in found.what
    (tmp_path / "right").mkdir()
    assert findings(tmp_path / "right", library, forward, right, PRODUCT) == []
    assert findings(tmp_path / "right", library, forward, right.replace("x.T @ g", "None"), PRODUCT) == []


def test_the_class_is_as_before_afterwards(tmp_path: Path, library: str) -> None:
    name = "torch.autograd" if library == "torch" else "glassgrad.engine.function"
    function = importlib.import_module(name).Function
    before = vars(function)["apply"]
    findings(tmp_path, library, *RIGHT["the derivative"])
    assert vars(function)["apply"] is before
