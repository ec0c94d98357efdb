"""NumPy text of ops that are not formulas: views, reductions and indexing, one entry per op.

The text of elementwise ops comes from their forwards, see `text_space`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.text import ATOM, Text, call, method
from glassgrad.compile.numpy.text_space import OPERATORS
from glassgrad.compile.plan.view_chains import HOLD

Template = Callable[[Instr, list[Text]], Text]

# --- shape ----------------------------------------------------------------------------------------


def _permute(instr: Instr, xs: list[Text]) -> Text:
    axes = instr.params["axes"]
    if axes == tuple(reversed(range(len(axes)))):
        return Text(xs[0].at(ATOM), ".T")
    if axes == (*range(len(axes) - 2), len(axes) - 1, len(axes) - 2):
        return Text(xs[0].at(ATOM), ".mT")
    return method(xs[0], "transpose", *axes)


def _flip(instr: Instr, xs: list[Text]) -> Text:
    # NumPy's flip is a view, which would see later writes to the state.
    if not instr.output.shape:  # PyTorch accepts dimension 0 of a number, NumPy does not
        return method(xs[0], "copy")
    return method(call("np.flip", xs[0], axis=_axis(instr.params["axis"])), "copy")


def _triangle(name: str) -> Template:
    def template(instr: Instr, xs: list[Text]) -> Text:
        diagonal = instr.params["diagonal"]
        return call(f"np.{name}", xs[0], **({"k": diagonal} if diagonal else {}))

    return template


def _pad(instr: Instr, xs: list[Text]) -> Text:
    options = {} if instr.params["value"] == 0 else {"constant_values": instr.params["value"]}
    return call("np.pad", xs[0], instr.params["widths"], **options)


# --- reductions -----------------------------------------------------------------------------------


def _axis(axis: tuple[int, ...]) -> Any:
    return axis[0] if len(axis) == 1 else axis


def _reduction(name: str) -> Template:
    def template(instr: Instr, xs: list[Text]) -> Text:
        return method(xs[0], name, **reduction_options(instr))

    return template


def reduction_options(instr: Instr) -> dict[str, Any]:
    """Return the keyword arguments of a reduction, without redundant ones."""
    source = instr.inputs[0]
    axis = instr.params["axis"]
    options: dict[str, Any] = {}
    if isinstance(axis, tuple):
        if isinstance(source, Var) and (len(axis) < source.ndim or not axis):
            options["axis"] = _axis(axis)
    elif axis is not None:
        options["axis"] = axis
    if instr.params.get("keepdims"):
        options["keepdims"] = True
    return options


# --- indexing -------------------------------------------------------------------------------------


def _one_hot(instr: Instr, xs: list[Text]) -> Text:
    counted = call("np.arange", instr.params["count"])
    return Text("(", xs[0].at(ATOM), "[..., None] == ", counted, ").astype(np.int64)")


def _cumsum(instr: Instr, xs: list[Text]) -> Text:
    axis = instr.params["axis"]
    if not instr.params.get("reverse"):
        return call("np.cumsum", xs[0], axis=axis)
    return call("np.flip", call("np.cumsum", call("np.flip", xs[0], axis=axis), axis=axis), axis=axis)


TEMPLATES: dict[str, Template] = {
    "matmul": lambda instr, xs: OPERATORS["matmul"](*xs),
    "reshape": lambda instr, xs: method(xs[0], "reshape", *(instr.params["shape"] or [()])),
    "permute_dims": _permute,
    "flip": _flip,
    "pad": _pad,
    "broadcast_to": lambda instr, xs: call("np.broadcast_to", xs[0], instr.params["shape"]),
    "astype": lambda instr, xs: method(xs[0], "astype", instr.params["dtype"]),
    "copy": lambda instr, xs: method(xs[0], "copy"),
    "alias": lambda instr, xs: xs[0],
    HOLD: lambda instr, xs: xs[0],
    "roll": lambda instr, xs: call("np.roll", xs[0], instr.params["shift"], axis=instr.params["axis"]),
    "tril": _triangle("tril"),
    "triu": _triangle("triu"),
    "concat": lambda instr, xs: call("np.concatenate", Text("[", text.listed(xs), "]"), axis=instr.params["axis"]),
    "sum": _reduction("sum"),
    "max": _reduction("max"),
    "min": _reduction("min"),
    "all": _reduction("all"),
    "any": _reduction("any"),
    "argmax": _reduction("argmax"),
    "argmin": _reduction("argmin"),
    "cumsum": _cumsum,
    "one_hot": _one_hot,
    "getitem": lambda instr, xs: Text(xs[0].at(ATOM), "[", text.index(instr.params["spec"], xs[1:]), "]"),
}
