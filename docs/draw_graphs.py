"""Draw the pictures of docs/drawing.md: `python docs/draw_graphs.py [--out FOLDER]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import glassgrad as gg
from glassgrad import nn

F = nn.functional
IMAGES = Path(__file__).resolve().parent / "images"


def expression() -> gg.drawing.Drawing:
    """Draw the tape of a small expression."""
    a = gg.tensor(2.0, requires_grad=True)
    b = gg.tensor(-3.0, requires_grad=True)
    c = gg.tensor(1.5, requires_grad=True)
    product = a * b
    loss = (product + c).tanh() + 0.1 * a * c
    return gg.draw(loss)


def quadratic(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
    """Return the textbook's function of two numbers."""
    return 3 * x**2 + x * y + 5 * y**2


def main() -> None:
    """Write every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    out = parser.parse_args().out
    expression().save(out / "graph_expression.svg")
    gg.draw(quadratic, 2.0, 3.0, view="sweeps").save(out / "graph_sweeps.svg")
    gg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x, y = gg.randn(4, 2), gg.randn(4, 1)

    def loss(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
        return F.mse_loss(model(x), y)

    gg.draw(loss, x, y, depth=1).save(out / "graph_layers.svg")
    gg.draw(loss, x, y, view="neurons").save(out / "graph_neurons.svg")
    gg.draw(loss, x, y, depth=1, opened=["model.0"]).save(out / "graph_opened.svg")
    block = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    gg.draw(block, gg.randn(2, 5, 16), view="layers").save(out / "graph_block.svg")
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)

    @gg.compile
    def step(x: gg.Tensor, y: gg.Tensor) -> gg.Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(x, y)
    gg.draw(step, view="layers").save(out / "graph_step.svg")


if __name__ == "__main__":
    main()
