"""Text of ops for programs that people read, where a running program calls the registry's faster code."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from glassgrad.compile.ir.graph import Instr
from glassgrad.compile.numpy.templates import HELPERS, TEMPLATES, Template, reduction_options
from glassgrad.compile.numpy.text import Text, call, method


def _stated(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the options of a helper that have their usual value."""
    usual = inspect.signature(HELPERS[name]).parameters
    return {key: value for key, value in options.items() if usual[key].default != value}


def _helper(name: str) -> Template:
    return lambda instr, xs: call(name, *xs, **_stated(name, instr.params))


def _windowed(name: str, *, shaped: bool) -> Template:
    """Windows over images; the size of the result is given where the helper cannot know it."""

    def template(instr: Instr, xs: list[Text]) -> Text:
        options = {key: value for key, value in instr.params.items() if key != "ceil"}
        if shaped:
            options["out"] = instr.output.shape[-2:]
        return call(name, *xs, **_stated(name, options))

    return template


def _linalg(name: str) -> Template:
    return lambda instr, xs: call(f"np.linalg.{name}", *xs)


def _mean(instr: Instr, xs: list[Text]) -> Text:
    """The mean over the axes of a sum: not an op of the table."""
    return method(xs[0], "mean", **reduction_options(instr))


READING: dict[str, Template] = {
    **TEMPLATES,
    **{op: _helper(op) for op in ("conv2d_input", "conv2d_weight", "leaky_relu", "elu", "mish", "hardswish", "lerp")},
    "conv2d": _windowed("conv2d", shaped=True),
    "max_pool2d": _windowed("max_pool2d", shaped=True),
    "max_pool2d_scatter": _windowed("max_pool2d_scatter", shaped=False),
    "sum_pool2d": _windowed("sum_pool2d", shaped=True),
    "sum_spread2d": _windowed("sum_spread2d", shaped=False),
    "mean": _mean,
    "round": lambda instr, xs: call("np.round", *xs),
    "inv": _linalg("inv"),
    "det": _linalg("det"),
    "cholesky": _linalg("cholesky"),
}
