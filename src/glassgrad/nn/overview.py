"""A table of a model: for each layer its output shape, its parameters and its operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.errors.packages import needed
from glassgrad.nn.modes import evaluating
from glassgrad.nn.module import Module

Shape = tuple[int, ...]


@dataclass
class Row:
    """One module of the model.

    Attributes:
        name: its dotted name, "" for the model.
        kind: its class.
        depth: its nesting level.
        output: shapes of its outputs, in its first call.
        parameters: the size of its own parameters, without those of modules below.
        flops: floating-point operations of its own, over all calls; a multiplication and an addition count as two.
        calls: how often it was called.
    """

    name: str
    kind: str
    depth: int
    output: list[Shape] = field(default_factory=list)
    parameters: int = 0
    flops: int = 0
    calls: int = 0


@dataclass
class Summary:
    """The result of `summary`; print it to see the table.

    Attributes:
        rows: one for each module, in the order of definition.
        parameters, trainable: the sizes of all and of trainable parameters, shared ones once.
        flops: of one forward pass.
        size: bytes of parameters and buffers.

    Example:
        >>> import glassgrad as gg
        >>> found = gg.nn.summary(gg.nn.Linear(3, 2), (5, 3))
        >>> found.parameters
        8
    """

    rows: list[Row]
    parameters: int
    trainable: int
    flops: int
    size: int

    def table(self) -> Any:
        """Return the table for rich."""
        with needed("rich", "tables of modules"):
            from rich.table import Table

        table = Table(title=None, show_footer=True, box=None, pad_edge=False)
        table.add_column("layer", footer="total")
        table.add_column("output", footer="")
        table.add_column("parameters", footer=f"{self.parameters:,}", justify="right")
        table.add_column("flops", footer=amount(self.flops), justify="right")
        for row in self.rows:
            name = row.name.rpartition(".")[2]
            title = "  " * row.depth + (f"{name}: {row.kind}" if name else row.kind)
            shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in row.output)
            table.add_row(title, shapes, f"{row.parameters:,}" if row.parameters else "", amount(row.flops))
        return table

    def __rich__(self) -> Any:
        return self.table()

    def __str__(self) -> str:
        import io

        table = self.table()
        from rich.console import Console

        out = io.StringIO()
        console = Console(file=out, width=120, no_color=True, force_terminal=False)
        console.print(table)
        frozen = self.parameters - self.trainable
        note = f", {frozen:,} of them frozen" if frozen else ""
        console.print(f"{self.parameters:,} parameters{note}; {self.size / 2**20:.2f} MiB with buffers")
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def amount(count: int) -> str:
    """Return a readable number of operations, such as 1.5 M."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return str(count) if count else ""


def summary(model: Module, *inputs: Any, **kwargs: Any) -> Summary:
    """Run a model once on inputs and describe each layer.

    Args:
        model: the model; it runs in evaluation mode, without recording, and is unchanged afterwards.
        inputs: its arguments; a tuple of ints stands for zeros of that shape.
        kwargs: its keyword arguments.

    Example:
        >>> import glassgrad as gg
        >>> found = gg.nn.summary(gg.nn.Sequential(gg.nn.Linear(4, 3), gg.nn.ReLU()), (2, 4))
        >>> found.parameters, found.flops
        (15, 60)
        >>> [row.output for row in found.rows]
        [[(2, 3)], [(2, 3)], [(2, 3)]]
    """
    rows: dict[int, Row] = {}
    handles = []
    for name, module in model.named_modules():
        row = Row(name, type(module).__name__, name.count(".") + 1 if name else 0)
        row.parameters = sum(parameter.numel() for parameter in module.parameters(recurse=False))
        rows[id(module)] = row
        handles.append(module.register_forward_hook(_noting(row)))
    try:
        with evaluating(model), no_grad():
            model(*[_zeros(x) for x in inputs], **kwargs)
    finally:
        for handle in handles:
            handle.remove()
    parameters = list(model.parameters())
    return Summary(
        list(rows.values()),
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in parameters if p.requires_grad),
        sum(row.flops for row in rows.values()),
        sum(t.nbytes for t in [*parameters, *model.buffers()]),
    )


def _zeros(x: Any) -> Any:
    shape = isinstance(x, tuple) and all(isinstance(n, int) for n in x)
    return make(np.zeros(x, np.float32), None, False) if shape else x


def _noting(row: Row) -> Callable[..., None]:
    def note(module: Module, args: tuple[Any, ...], output: Any) -> None:
        shapes = [tuple(y.shape) for y in _tensors(output)]
        row.output = row.output or shapes
        row.calls += 1
        row.flops += flops(module, args, shapes)

    return note


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in _tensors(part)]
    return [value] if isinstance(value, Tensor) else []


def flops(module: Module, args: tuple[Any, ...], outputs: list[Shape]) -> int:
    """Return the floating-point operations of one call of a layer, not counting the modules below it.

    Products count fully, everything else by a rule of thumb for each output; lookups and shapes are free.
    """
    counted = _COUNTS.get(type(module).__name__)
    return int(counted(module, args, outputs)) if counted is not None and outputs else 0


def _per_output(cost: int) -> Callable[..., int]:
    return lambda module, args, outputs: cost * math.prod(outputs[0])


def _conv(module: Module, args: tuple[Any, ...], outputs: list[Shape]) -> int:
    window: int = math.prod(module.weight.shape[1:])
    return math.prod(outputs[0]) * (2 * window + (module.bias is not None))


def _conv_transpose(module: Module, args: tuple[Any, ...], outputs: list[Shape]) -> int:
    window: int = math.prod(module.weight.shape[1:])
    return 2 * window * int(args[0].numel()) + (module.bias is not None) * math.prod(outputs[0])


def _attention(module: Module, args: tuple[Any, ...], outputs: list[Shape]) -> int:
    query, key = args[0], args[1]
    batch = query.numel() // (query.shape[-1] * (query.shape[-2] if module.batch_first else query.shape[0]))
    rows, columns = query.numel() // query.shape[-1], key.numel() // key.shape[-1]
    width = module.embed_dim
    projections = 2 * width * (rows * width + columns * (module.kdim + module.vdim))
    places = rows * columns // max(batch, 1)
    return int(projections + places * (4 * width + 5 * module.num_heads))


def _recurrent(module: Module, args: tuple[Any, ...], outputs: list[Shape]) -> int:
    data = getattr(args[0], "data", args[0])
    steps = math.prod(data.shape[:-1])
    return sum(2 * steps * weight.numel() for weight in module.parameters() if weight.ndim > 1)


def _cell(module: Module, args: tuple[Any, ...], outputs: list[Shape]) -> int:
    rows = math.prod(outputs[0][:-1])
    return 2 * rows * int(module.weight_ih.numel() + module.weight_hh.numel())


_COUNTS: dict[str, Callable[..., int]] = {
    "Linear": lambda layer, args, outputs: math.prod(outputs[0]) * (2 * layer.in_features + (layer.bias is not None)),
    "Bilinear": lambda layer, args, outputs: math.prod(outputs[0]) * 2 * layer.in1_features * (layer.in2_features + 1),
    "MultiheadAttention": _attention,
    **dict.fromkeys(("Conv1d", "Conv2d"), _conv),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d"), _conv_transpose),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("LSTMCell", "GRUCell", "RNNCell"), _cell),
    **dict.fromkeys(("ReLU", "ReLU6", "LeakyReLU", "Hardtanh", "PReLU", "Threshold"), _per_output(1)),
    **dict.fromkeys(("Sigmoid", "Tanh", "SiLU", "GELU", "ELU", "SELU", "Mish", "Softplus"), _per_output(4)),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNorm", "GroupNorm", "RMSNorm"), _per_output(5)),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), _per_output(2)),
}


__all__ = ["Summary", "summary"]
