"""Write a PyTorch program for the model of a run: the printed layers, and `forward`.

The printed form of a layer is the expression that constructs PyTorch's layer. Here the `forward` of each class of
`glassgrad.models` is repeated in PyTorch; tests compare the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glassgrad.nn.containers import ModuleList, Sequential

# Code after the `__init__` line of a class, by its name. Numbers of the model are in its attributes.
_FORWARD = {
    "Bigram": """
    def forward(self, tokens):  # (batch, context) of int64
        return self.logits(tokens[:, -1])
""",
    "NamesMLP": """
    def forward(self, tokens):  # (batch, context) of int64
        return self.output(torch.tanh(self.norm(self.hidden(self.embedding(tokens).flatten(1)))))
""",
    "CharRNN": """
    def forward(self, tokens):  # (batch, length) of int64
        x, _ = self.network(F.dropout(self.embedding(tokens), self.dropout, self.training))
        return self.output(F.dropout(x, self.dropout, self.training))
""",
    "Block": """
    def attend(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + F.dropout(self.attend(self.norm1(x)), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)
""",
    "GPT": """
    def forward(self, tokens):  # (batch, length) of int64
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
""",
}
_NUMBERS = ("heads", "dropout")


def program(model: Any) -> str | None:
    """Return the lines that define and build a model, from imports to `model = `; None for an unknown class."""
    if isinstance(model, Sequential):
        layers = "".join(f"    nn.{layer!r},\n" for layer in model)
        return f"from torch import nn\n\nmodel = nn.Sequential(\n{layers})\n"
    if type(model).__name__ not in _FORWARD:
        return None
    classes = list(dict.fromkeys(_classes(model)))
    body = "\n\n".join(classes)
    imports = [line for name, line in _IMPORTS if name in body]
    return "\n".join(imports) + f"\n\n\n{body}\n\nmodel = {type(model).__name__}()\n"


_IMPORTS = (
    ("torch.", "import torch"),
    ("nn.", "from torch import nn"),
    ("F.", "from torch.nn import functional as F"),
)


def _classes(module: Any) -> Iterator[str]:
    """Yield the classes of a module, those of its parts first."""
    lines = [f"class {type(module).__name__}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines += [f"        self.{name} = {getattr(module, name)!r}" for name in _NUMBERS if hasattr(module, name)]
    for name, part in module.named_children():
        if isinstance(part, ModuleList):
            kind = type(part[0]).__name__
            yield from _classes(part[0])
            lines.append(f"        self.{name} = nn.ModuleList([{kind}() for _ in range({len(part)})])")
        else:
            lines.append(f"        self.{name} = nn.{part!r}")
    yield "\n".join(lines) + "\n" + _FORWARD[type(module).__name__]


__all__ = ["program"]
