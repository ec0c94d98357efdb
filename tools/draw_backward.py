"""Draw the picture of the README: the backward pass of a small network, printed by `backward_source`.

`python tools/draw_backward.py` writes docs/images/backward.svg.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax

import glassgrad as gg

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "backward.svg"


def program() -> str:
    """Return the forward and backward lines of a network with one hidden layer."""
    gg.manual_seed(1)
    W1, b1 = gg.randn(30, 8, requires_grad=True), gg.zeros(8, requires_grad=True)
    W2, b2 = gg.randn(8, 5, requires_grad=True), gg.zeros(5, requires_grad=True)

    def loss_of(X: gg.Tensor, Y: gg.Tensor) -> gg.Tensor:
        hidden = gg.tanh(X @ W1 + b1)
        logits = hidden @ W2 + b2
        logprobs = gg.log_softmax(logits, 1)
        return -logprobs[gg.arange(4), Y].mean()

    source = str(gg.backward_source(loss_of, simplify=True)(gg.randn(4, 30), gg.tensor([0, 1, 2, 3])))
    lines = source[source.index("    # forward") : source.index("    gradients =")].splitlines()
    return "\n".join(aligned([line[4:] for line in lines])).strip()


def aligned(lines: list[str]) -> list[str]:
    """Shorten each comment to the shape or the rule, and align the comments."""
    split = [re.split(r"\s{2,}#\s*", line, maxsplit=1) for line in lines]
    column = 76
    result = []
    for code, *comment in split:
        text = re.sub(r"^.*\[(.*)\]$", r"\1", comment[0]) if comment else ""
        result.append(f"{code.ljust(column)}# {text}" if text else code)
    return result


def main() -> None:
    """Write the picture."""
    console = Console(record=True, width=138, file=io.StringIO())
    console.print(Syntax(program(), "python", theme="monokai", background_color="default", word_wrap=True))
    svg = console.export_svg(title="gg.backward_source(loss_of, simplify=True)(X, Y)")
    # The picture must not load fonts from the network.
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->", "", svg, flags=re.DOTALL)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
