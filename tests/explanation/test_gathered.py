"""The modules in a drawing of a tensor: those of a call of the model, as far as the tape records them."""

from __future__ import annotations

from typing import Any

import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.nn import functional as F


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: Any) -> Any:
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_ops_of_a_tensor_are_gathered_into_the_modules_whose_parameters_they_read() -> None:
    model, x, y = Net(), gg.randn(5, 3), gg.tensor([0, 1, 0, 1, 0])
    of_tensor = gg.draw(F.cross_entropy(model(x), y)).graph

    def loss(x: Any) -> Any:
        return F.cross_entropy(model(x), y)

    assert of_tensor.modules == gg.draw(loss, x).graph.modules
    ops = {(node.op, node.module) for node in of_tensor.nodes if node.kind == "op"}
    assert ("gelu", ("model", "blocks.1")) in ops
    assert ("cross_entropy", ()) in ops


@pytest.mark.parametrize("how", ["called twice", "left and entered again"])
def test_modules_that_cannot_be_told_are_left_out(how: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    x = gg.randn(2, 3)
    y = model(model(x)) if how == "called twice" else model[2](model[0](x).exp() * 2)
    drawn = gg.draw(y.sum()).graph
    assert drawn.modules.keys() == (set() if how == "called twice" else {("model",), ("model", "0"), ("model", "2")})
