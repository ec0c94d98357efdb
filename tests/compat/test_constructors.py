"""`torch.Tensor`, `FloatTensor`, `tensor` of lists of tensors, `Variable` and `grad` accept PyTorch's arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import compat

# Each makes a tensor, given the library under the name torch.
MADE: dict[str, Callable[[Any], Any]] = {
    "FloatTensor of a NumPy integer": lambda torch: torch.FloatTensor(np.int64(3)),
    "FloatTensor of NumPy integers": lambda torch: torch.FloatTensor(np.int64(3), np.int32(2)),
    "FloatTensor of a shape": lambda torch: torch.FloatTensor(torch.ones(2, 3).shape),
    "FloatTensor of a tuple": lambda torch: torch.FloatTensor((2, 3)),
    "FloatTensor of sizes, one a tensor": lambda torch: torch.FloatTensor(torch.tensor(2), 3),
    "FloatTensor of nothing": lambda torch: torch.FloatTensor(),
    "FloatTensor of a tensor": lambda torch: torch.FloatTensor(torch.ones(3)),
    "FloatTensor of an array": lambda torch: torch.FloatTensor(np.ones((2, 2))),
    "LongTensor of a shape": lambda torch: torch.LongTensor(torch.ones(2).shape),
    "ShortTensor of numbers": lambda torch: torch.ShortTensor([1, 2]),
    "CharTensor of numbers": lambda torch: torch.CharTensor([1, 2]),
    "Tensor of a NumPy integer": lambda torch: torch.Tensor(np.int64(3)),
    "Tensor of sizes of two kinds": lambda torch: torch.Tensor(np.int64(3), 2),
    "Tensor of a shape": lambda torch: torch.Tensor(torch.ones(2, 3).shape),
    "Tensor of a tuple": lambda torch: torch.Tensor((2, 3)),
    "Tensor of sizes, one a tensor": lambda torch: torch.Tensor(2, torch.tensor(3)),
    "Tensor of nothing": lambda torch: torch.Tensor(),
    "Tensor of tensors": lambda torch: torch.Tensor([torch.tensor([1.0]), torch.tensor([2.0])]),
    "tensor of tensors with one number": lambda torch: torch.tensor([torch.tensor([1.0]), torch.tensor([2.0])]),
    "tensor of nested ones": lambda torch: torch.tensor([[torch.tensor([[1.0]])], [torch.tensor([[2.0]])]]),
    "tensor of tensors without dimensions": lambda torch: torch.tensor([torch.tensor(1), torch.tensor(2)]),
    "tensor of a tensor and a number": lambda torch: torch.tensor([torch.tensor(1.0), 2]),
    "tensor of a whole tensor and a float": lambda torch: torch.tensor([torch.tensor(1), 2.5]),
    "tensor of a number and a tensor": lambda torch: torch.tensor([2, torch.tensor([1.5])]),
    "tensor of doubles and floats": lambda torch: torch.tensor([torch.ones(1, dtype=torch.float64), torch.ones(1)]),
    "tensor of tensors, with a dtype": lambda torch: torch.tensor([torch.tensor([1.0])], dtype=torch.float64),
    "tensor of a tensor deeper inside": lambda torch: torch.tensor([[1, 2], [torch.tensor([3]), 4]]),
    "as_tensor of tensors": lambda torch: torch.as_tensor([torch.tensor([1.0]), torch.tensor([2.0])]),
    "new of a shape": lambda torch: torch.ones(2).new(torch.ones(2, 3).shape).fill_(1),
    "new of a NumPy integer": lambda torch: torch.ones(2).new(np.int64(3)).fill_(1),
    "Variable": lambda torch: torch.autograd.Variable(torch.ones(2)),
}  # fmt: skip  # a table
SIZES = {"NumPy integer", "integers", "a shape", "sizes", "Tensor of nothing"}  # their values are not set


@pytest.mark.parametrize("name", MADE)
def test_a_tensor_is_made_as_there(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    expected = MADE[name](torch)
    with compat.as_torch():
        found = MADE[name](gg)
    assert tuple(found.shape) == tuple(expected.shape)
    assert str(found.dtype) == str(expected.dtype).removeprefix("torch.")
    if not any(part in name for part in SIZES):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_outside_of_it_tensors_in_a_list_keep_their_dimensions() -> None:
    parts = [gg.tensor([1.0]), gg.tensor([2.0])]
    with compat.as_torch():
        assert gg.tensor(parts).shape == (2,)
        assert gg.tensor([gg.ones(2), gg.ones(2)]).shape == (2, 2)
        with pytest.raises(gg.errors.ShapeError):
            gg.tensor([[1, 2], [3]])
    assert gg.tensor(parts).shape == (2, 1)


def test_tracked_tensors_in_a_list_warn_that_their_gradient_is_lost() -> None:
    with compat.as_torch(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gg.tensor([gg.ones(1, requires_grad=True)])
    assert [one.category for one in caught] == [gg.errors.GradientLostWarning]


def test_every_tensor_is_a_variable() -> None:
    assert isinstance(gg.ones(1), gg.autograd.Variable)
    assert isinstance(gg.nn.Parameter(gg.ones(1)), gg.autograd.Variable)
    assert not isinstance(np.ones(1), gg.autograd.Variable)


def test_an_instance_of_a_function_applies_it() -> None:
    with compat.as_torch() as torch:

        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return 2 * ctx.saved_tensors[0] * g

        x = torch.tensor([3.0], requires_grad=True)
        Square().apply(x).backward()
        assert x.grad.item() == 6
        with pytest.raises(gg.errors.KindError):
            Square()(x)
    with pytest.raises(gg.errors.KindError):
        Square()


# --- grad -----------------------------------------------------------------------------------------


def penalty(torch: Any) -> list[Any]:
    x = torch.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    (slope,) = torch.autograd.grad(
        outputs=(x**3).sum(1),
        inputs=x,
        grad_outputs=torch.ones(2),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )
    (slope.norm(2, dim=1) - 1).pow(2).mean().backward()
    return [slope.detach(), x.grad]


def rows(torch: Any) -> list[Any]:
    x = torch.tensor([0.5, -1.0], requires_grad=True)
    unused = torch.ones(3, requires_grad=True)
    y = torch.stack([x.prod(), x.exp().sum()])
    found = torch.autograd.grad(y, [x, unused], torch.eye(2), is_grads_batched=True, allow_unused=True)
    assert found[1] is None
    return [found[0]]


def zeros(torch: Any) -> list[Any]:
    x, unused = torch.tensor([0.5, -1.0], requires_grad=True), torch.ones(3, requires_grad=True)
    return list(torch.autograd.grad((x**2).sum(), [x, unused], materialize_grads=True))


@pytest.mark.parametrize("program", [penalty, rows, zeros])
def test_the_arguments_of_grad(program: Callable[[Any], list[Any]]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    for found, expected in zip(program(gg), program(torch), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)


def test_gradients_of_rows_are_a_jacobian() -> None:
    x = gg.tensor([0.5, -1.0, 2.0], dtype=gg.float64, requires_grad=True)
    (found,) = gg.autograd.grad(x**3, x, gg.eye(3, dtype=gg.float64), is_grads_batched=True)
    step = 1e-6 * np.eye(3)
    at = x.detach().numpy()
    expected = ((at + step) ** 3 - (at - step) ** 3).T / 2e-6
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)
