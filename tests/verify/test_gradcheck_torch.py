"""gradcheck of PyTorch's functions and modules: verdicts that torch.autograd.gradcheck does not give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glassgrad import compat, errors
from glassgrad.verify import gradcheck, gradgradcheck

torch = pytest.importorskip("torch", reason="PyTorch's functions are what is checked here")

X = np.random.default_rng(0).normal(size=(3, 4))


class WrongExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return -g * ctx.saved_tensors[0].exp()


class OnlyFloat32(torch.autograd.Function):
    """A kernel that exists in float32 alone, as many do."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        if x.dtype != torch.float32:
            raise RuntimeError("expected scalar type Float but found Double")
        ctx.save_for_backward(x)
        return (x * x).sum() + 1e6

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0] * OnlyFloat32.factor


def test_functions_and_modules() -> None:
    x = torch.tensor(X, requires_grad=True)
    assert gradcheck(lambda x: torch.tanh(x).sum(0), x).kind == "right"
    assert gradcheck(lambda x: torch.tanh(x).sum(0), (x,)).kind == "right"
    verdict = gradcheck(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)), x.detach().float())
    assert verdict.kind == "right", str(verdict)
    assert [row.name for row in verdict.rows][1:] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert x.grad is None
    assert gradgradcheck(lambda x: x.exp() * x, x).kind == "right"
    assert gradgradcheck(torch.nn.Linear(4, 3), x).kind == "right"


def test_the_module_is_left_alone() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    gradcheck(module, X.astype(np.float32))
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.dtype == before[name].dtype
    assert all(parameter.grad is None for parameter in module.parameters())


def test_tensors_of_ours_stay_ours_while_the_library_has_pytorchs_name() -> None:
    with compat.as_torch() as ours:
        verdict = gradcheck(lambda x: x * x, ours.tensor([1.0, 2.0], dtype=ours.float64))
        assert verdict.kind == "right"
    assert gradcheck(torch.sin, torch.tensor(X)).kind == "right"


def test_wrong() -> None:
    verdict = gradcheck(WrongExp.apply, torch.tensor(X))
    assert verdict.kind == "wrong"
    assert "all by the sign" in str(verdict)
    with pytest.raises(errors.GradcheckError, match="by the sign"):
        gradcheck(WrongExp.apply, torch.tensor(X, dtype=torch.float32), raise_exception=True)
    # PyTorch agrees that it is wrong.
    assert not torch.autograd.gradcheck(WrongExp.apply, torch.tensor(X, requires_grad=True), raise_exception=False)


def test_noise_where_pytorch_reports_a_wrong_jacobian() -> None:
    x = torch.tensor(X, dtype=torch.float32)
    OnlyFloat32.factor = 1.0
    verdict = gradcheck(OnlyFloat32.apply, x)
    assert verdict.kind == "float32 noise", str(verdict)
    with pytest.warns(UserWarning, match="not a double precision"):
        assert not torch.autograd.gradcheck(OnlyFloat32.apply, x.clone().requires_grad_(), raise_exception=False)

    def upcast(x: Any) -> Any:
        return ((x + 1000) ** 2).mean() - (x + 1000).mean() ** 2

    assert gradcheck(upcast, x).kind == "float32 noise"
    assert gradcheck(upcast, x.double()).kind == "right"
    assert gradcheck(lambda x: x.sin(), x).kind == "right"


def test_kink_and_nondeterminism() -> None:
    verdict = gradcheck(torch.relu, torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert verdict.kind == "kink here"
    assert verdict.worst is not None
    assert (verdict.worst.position, verdict.worst.left, verdict.worst.right) == ((1,), 0.0, pytest.approx(1.0))
    assert gradcheck(torch.nn.functional.dropout, torch.tensor(X)).kind == "nondeterministic"
    assert gradcheck(torch.nn.Sequential(torch.nn.Dropout()), torch.tensor(X)).kind == "nondeterministic"
    assert gradcheck(torch.nn.Sequential(torch.nn.Dropout()).eval(), torch.tensor(X)).kind == "right"


def test_messages() -> None:
    with pytest.raises(errors.KindError, match=r"complex numbers"):
        gradcheck(torch.fft.fft, torch.tensor(X))
    with pytest.raises(errors.KindError, match=r"returned float, expected PyTorch tensors"):
        gradcheck(lambda x: x.sum().item(), torch.tensor(X))
    with pytest.raises(RuntimeError, match="boom"):
        gradcheck(boom, torch.tensor(X, dtype=torch.float32))


def boom(x: Any) -> Any:
    raise RuntimeError("boom")
