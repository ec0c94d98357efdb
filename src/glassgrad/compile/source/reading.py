"""Text of ops that are not formulas, for readable programs."""

from __future__ import annotations

import inspect
from typing import Any

from glassgrad.compile.ir.graph import Instr, Params, Var
from glassgrad.compile.numpy import text
from glassgrad.compile.numpy.templates import TEMPLATES, Template, reduction_options
from glassgrad.compile.numpy.text import Text, call, method
from glassgrad.compile.source.functions import HELPERS


def _stated(name: str, options: Params) -> dict[str, Any]:
    """Omit the options of a helper that have their default value."""
    usual = inspect.signature(HELPERS[name]).parameters
    return {key: value for key, value in options.items() if usual[key].default != value}


def _helper(name: str) -> Template:
    return lambda instr, xs: call(name, *xs, **_stated(name, instr.params))


def _windowed(name: str, *, shaped: bool) -> Template:
    """Write windows over images, with the size of the result if the helper cannot infer it."""

    def template(instr: Instr, xs: list[Text]) -> Text:
        options = {key: value for key, value in instr.params.items() if key != "ceil"}
        if shaped:
            options["out"] = instr.output.shape[-2:]
        return call(name, *xs, **_stated(name, options))

    return template


def _scan_back(name: str, read: tuple[int, ...]) -> Template:
    """Write a loop backwards over time; the cotangents that exist are keyword arguments.

    `read` are the operands after them that the helper takes.
    """

    def template(instr: Instr, xs: list[Text]) -> Text:
        options = dict(instr.params)
        names = [name for name, there in zip(("dy", "dh", "dc"), options.pop("given"), strict=False) if there]
        given = dict(zip(names, xs, strict=False))
        rest = xs[len(names) :]
        return call(name, *(rest[at] for at in read), **given, **_stated(name, options))

    return template


def _linalg(name: str) -> Template:
    return lambda instr, xs: call(f"np.linalg.{name}", *xs)


def _mean(instr: Instr, xs: list[Text]) -> Text:
    """The mean over the axes of a sum: not an op of the table."""
    return method(xs[0], "mean", **reduction_options(instr))


def _key(spec: tuple[Any, ...], arrays: list[Text]) -> Text:
    """Write an index as a value."""
    return Text("np.index_exp[", text.index(spec, arrays), "]")


def _put_add(instr: Instr, xs: list[Text]) -> Text:
    spec = instr.params["spec"]
    key = _key(spec, xs[1:]) if len(xs) != 2 or len(spec) != 1 else xs[1]
    return call("put_add", xs[0], key, instr.params["shape"])


def _take_along(instr: Instr, xs: list[Text]) -> Text:
    x, positions = instr.inputs
    axis = instr.params["axis"]
    assert isinstance(x, Var)
    assert isinstance(positions, Var)
    alike = all(n == m for d, (n, m) in enumerate(zip(x.shape, positions.shape, strict=True)) if d != axis)
    # NumPy's function requires the other axes to agree; PyTorch's gather may read only a part of x.
    return call("np.take_along_axis" if alike else "take_along_axis", xs[0], xs[1], axis=axis)


READING: dict[str, Template] = {
    **TEMPLATES,
    **{op: _helper(op) for op in ("conv2d_input", "conv2d_weight", "softmax", "log_softmax", "logsumexp")},
    "conv2d": _windowed("conv2d", shaped=True),
    **{op: _helper(op) for op in ("lstm_scan", "gru_scan", "rnn_scan")},
    "lstm_scan_back": _scan_back("lstm_scan_back", (1, 2, 4, 5)),
    "gru_scan_back": _scan_back("gru_scan_back", (0, 1, 2, 3)),
    "rnn_scan_back": _scan_back("rnn_scan_back", (0, 2)),
    "max_pool2d": _windowed("max_pool2d", shaped=True),
    "max_pool2d_scatter": _windowed("max_pool2d_scatter", shaped=False),
    "sum_pool2d": _windowed("sum_pool2d", shaped=True),
    "sum_spread2d": _windowed("sum_spread2d", shaped=False),
    "put_add": _put_add,
    "take_along_axis": _take_along,
    "at_set": lambda instr, xs: call("at_set", xs[0], _key(instr.params["spec"], xs[2:]), xs[1]),
    "put_along_add": lambda instr, xs: call(
        "put_along_add", xs[0], xs[1], instr.params["shape"], axis=instr.params["axis"]
    ),
    "mean": _mean,
    "inv": _linalg("inv"),
    "det": _linalg("det"),
    "cholesky": _linalg("cholesky"),
}
