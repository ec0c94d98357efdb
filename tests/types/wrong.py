"""Mistakes that a type checker has to find, and inferred types: read by test_checkers.py, never run.

`# error: CODE` names the mypy error that a line must give, `# is: TYPE` the type that `reveal_type` must print.
"""

# ruff: noqa: B018 - expressions stand here for their types

from __future__ import annotations

from typing import reveal_type

import numpy as np

import glassgrad as gg
from glassgrad import nn
from glassgrad.utils.data import DataLoader, TensorDataset

x = gg.tensor([1.0])

# Misspelt methods and wrong keywords.
x.sumx()  # error: attr-defined
gg.expp(x)  # error: attr-defined
gg.sum(x, dimm=0)  # error: call-overload
x.softmax(0).nosuch  # error: attr-defined
gg.zeros(3, dtypee=gg.float32)  # error: call-arg
nn.Linear(2, out=3)  # error: call-arg
nn.Linear(2, 3)(x, 3)  # error: call-arg
gg.optim.SGD([x], learning_rate=0.1)  # error: call-arg
DataLoader(TensorDataset(x), batchsize=3)  # error: call-arg
gg.relu("text")  # error: type-var
nn.functional.gelu(x, approx="tanh")  # error: call-arg
gg.exp_p(x)  # error: attr-defined
gg.linalg.inv(x, upper=True)  # error: call-arg
gg.fft.rfft(x, "ortho")  # error: arg-type
gg.special.erff(x)  # error: attr-defined


@gg.compile
def step(a: gg.Tensor, times: int = 2) -> gg.Tensor:
    return a * times


@gg.compile(strict=True)
def other(a: gg.Tensor) -> gg.Tensor:
    return a


class Doubled(nn.Module):
    def forward(self, a: gg.Tensor) -> gg.Tensor:
        return a + a


step(x, time=3)  # error: call-arg
step("text")  # error: arg-type
Doubled()(x, 2)  # error: call-arg

# What things are.
reveal_type(x)  # is: Tensor
reveal_type(1 + x)  # is: Tensor
reveal_type(x == 1)  # is: Tensor
reveal_type(x[0])  # is: Tensor
reveal_type(x.T)  # is: Tensor
reveal_type(x.shape)  # is: Size
reveal_type(x.shape[0])  # is: int
reveal_type(x.size(0))  # is: int
reveal_type(x.max())  # is: Tensor
reveal_type(x.max(dim=0).values)  # is: Tensor
reveal_type(x.sum(axis=0, keepdims=True))  # is: Tensor
reveal_type(gg.exp(x))  # is: Tensor
reveal_type(gg.exp(np.ones(2)))  # is: ndarray[tuple[Any, ...], dtype[Any]]
reveal_type(gg.where(x > 0, x, 0.0))  # is: Tensor
reveal_type(gg.cat([x, x]))  # is: Tensor
reveal_type(gg.float32)  # is: dtype[floating[_32Bit]]
reveal_type(nn.Parameter(x).add_(1))  # is: Parameter
reveal_type(step(x, times=3))  # is: Tensor
reveal_type(other(x))  # is: Tensor
reveal_type(step)  # is: Compiled[[a: Tensor, times: int =], Tensor]
reveal_type(gg.compile(nn.Linear(2, 3))(x))  # is: Tensor
reveal_type(Doubled()(x))  # is: Tensor
reveal_type(nn.functional.cross_entropy(x, x))  # is: Tensor
reveal_type(nn.MSELoss()(x, x))  # is: Tensor
reveal_type(gg.func.value_and_grad(other)(x))  # is: tuple[Tensor, Any]
reveal_type(gg.func.vmap(other)(x))  # is: Tensor
reveal_type(gg.linalg.solve(x, x))  # is: Tensor
reveal_type(gg.linalg.svd(x).S)  # is: Tensor
reveal_type(gg.linalg.eigh(x)[0])  # is: Tensor
reveal_type(gg.fft.rfft(x, n=8))  # is: Tensor
reveal_type(gg.special.logsumexp(x, 0))  # is: Tensor
