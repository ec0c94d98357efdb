"""How each op is written in NumPy: one entry an op, giving an expression for its operands' expressions.

`HELPERS` holds the functions that NumPy lacks; their text is put in front of a program that uses them. An op with
neither is called through the registry, which works in a running program but not in a file of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.numpy import helpers, text
from glassgrad.compile.numpy.text import (
    AND,
    ATOM,
    COMPARISON,
    OR,
    POWER,
    PRODUCT,
    SHIFT,
    SUM,
    UNARY,
    XOR,
    Text,
    call,
    method,
)

Template = Callable[[Instr, list[Text]], Text]


def _operator(sign: str, level: int) -> Template:
    return lambda instr, xs: text.binary(xs[0], sign, xs[1], level)


def _prefix(sign: str) -> Template:
    return lambda instr, xs: Text(f"{sign}{xs[0].at(UNARY)}", UNARY)


def _compared(sign: str) -> Template:
    # Python chains comparisons, so neither side may be one without brackets.
    return lambda instr, xs: Text(f"{xs[0].at(COMPARISON + 1)} {sign} {xs[1].at(COMPARISON + 1)}", COMPARISON)


def _function(name: str) -> Template:
    return lambda instr, xs: call(f"np.{name}", *xs)


def _helper(name: str) -> Template:
    return lambda instr, xs: call(name, *xs, **instr.params)


# --- arithmetic -----------------------------------------------------------------------------------


def _power(instr: Instr, xs: list[Text]) -> Text:
    base, exponent = xs
    # A sign in front of the exponent needs no brackets.
    return Text(f"{base.at(POWER + 1)}**{exponent.at(UNARY)}", POWER)


def _reciprocal(instr: Instr, xs: list[Text]) -> Text:
    return text.binary(Text("1"), "/", xs[0], PRODUCT)


def _rsqrt(instr: Instr, xs: list[Text]) -> Text:
    return text.binary(Text("1"), "/", call("np.sqrt", xs[0]), PRODUCT)


def _square(instr: Instr, xs: list[Text]) -> Text:
    return Text(f"{xs[0].at(POWER + 1)}**2", POWER)


def _clip(instr: Instr, xs: list[Text]) -> Text:
    return call("np.clip", xs[0], instr.params["low"], instr.params["high"])


# --- shape ----------------------------------------------------------------------------------------


def _reshape(instr: Instr, xs: list[Text]) -> Text:
    return method(xs[0], "reshape", *instr.params["shape"]) if instr.params["shape"] else method(xs[0], "reshape", ())


def _permute(instr: Instr, xs: list[Text]) -> Text:
    axes = instr.params["axes"]
    if axes == tuple(reversed(range(len(axes)))):
        return Text(f"{xs[0].at(ATOM)}.T")
    if axes == (*range(len(axes) - 2), len(axes) - 1, len(axes) - 2):
        return Text(f"{xs[0].at(ATOM)}.mT")
    return method(xs[0], "transpose", *axes)


def _broadcast(instr: Instr, xs: list[Text]) -> Text:
    return call("np.broadcast_to", xs[0], instr.params["shape"])


def _astype(instr: Instr, xs: list[Text]) -> Text:
    return method(xs[0], "astype", instr.params["dtype"])


def _flip(instr: Instr, xs: list[Text]) -> Text:
    # NumPy's flip is a view, which would follow later writes to the state.
    return method(call("np.flip", xs[0], axis=_axis(instr.params["axis"])), "copy")


def _roll(instr: Instr, xs: list[Text]) -> Text:
    return call("np.roll", xs[0], instr.params["shift"], axis=instr.params["axis"])


def _triangle(name: str) -> Template:
    def template(instr: Instr, xs: list[Text]) -> Text:
        diagonal = instr.params["diagonal"]
        return call(f"np.{name}", xs[0], **({"k": diagonal} if diagonal else {}))

    return template


def _pad(instr: Instr, xs: list[Text]) -> Text:
    options = {} if instr.params["value"] == 0 else {"constant_values": instr.params["value"]}
    return call("np.pad", xs[0], instr.params["widths"], **options)


def _concatenate(instr: Instr, xs: list[Text]) -> Text:
    listed = Text(f"[{', '.join(x.code for x in xs)}]")
    return call("np.concatenate", listed, axis=instr.params["axis"])


# --- reductions -----------------------------------------------------------------------------------


def _axis(axis: tuple[int, ...]) -> Any:
    return axis[0] if len(axis) == 1 else axis


def _reduction(name: str) -> Template:
    def template(instr: Instr, xs: list[Text]) -> Text:
        options = reduction_options(instr)
        return method(xs[0], name, **options)

    return template


def reduction_options(instr: Instr) -> dict[str, Any]:
    """Return the keyword arguments of a reduction, without those that say nothing."""
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


def _softmax(instr: Instr, xs: list[Text]) -> Text:
    return call(instr.op, xs[0], axis=instr.params["axis"])


def _logsumexp(instr: Instr, xs: list[Text]) -> Text:
    return call("logsumexp", xs[0], axis=instr.params["axis"], keepdims=instr.params["keepdims"])


# --- indexing -------------------------------------------------------------------------------------


def _getitem(instr: Instr, xs: list[Text]) -> Text:
    return Text(f"{xs[0].at(ATOM)}[{text.index(instr.params['spec'], xs[1:])}]")


def _put_add(instr: Instr, xs: list[Text]) -> Text:
    spec = instr.params["spec"]
    key = f"np.index_exp[{text.index(spec, xs[1:])}]" if len(xs) != 2 or len(spec) != 1 else xs[1].code
    return call("put_add", xs[0], Text(key), instr.params["shape"])


def _at_set(instr: Instr, xs: list[Text]) -> Text:
    return call("at_set", xs[0], Text(f"np.index_exp[{text.index(instr.params['spec'], xs[2:])}]"), xs[1])


def _take_along(instr: Instr, xs: list[Text]) -> Text:
    x, positions = instr.inputs
    axis = instr.params["axis"]
    assert isinstance(x, Var)
    assert isinstance(positions, Var)
    alike = all(n == m for d, (n, m) in enumerate(zip(x.shape, positions.shape, strict=True)) if d != axis)
    # NumPy's own wants the other axes to agree; PyTorch's gather may leave some of x out.
    return call("np.take_along_axis" if alike else "take_along_axis", xs[0], xs[1], axis=axis)


def _put_along(instr: Instr, xs: list[Text]) -> Text:
    return call("put_along_add", xs[0], xs[1], instr.params["shape"], axis=instr.params["axis"])


def _one_hot(instr: Instr, xs: list[Text]) -> Text:
    counted = call("np.arange", instr.params["count"])
    return Text(f"({xs[0].at(ATOM)}[..., None] == {counted.code}).astype(np.int64)")


def _arg(name: str) -> Template:
    return lambda instr, xs: method(xs[0], name, **reduction_options(instr))


def _cumulative(name: str) -> Template:
    def template(instr: Instr, xs: list[Text]) -> Text:
        axis = instr.params["axis"]
        if not instr.params.get("reverse"):
            return call(f"np.{name}", xs[0], axis=axis)
        from_behind = call(f"np.{name}", call("np.flip", xs[0], axis=axis), axis=axis)
        return call("np.flip", from_behind, axis=axis)

    return template


def _same(instr: Instr, xs: list[Text]) -> Text:
    return xs[0]


_NUMPY = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
    "atanh": "arctanh",
} | {
    name: name
    for name in (
        "abs", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "float_power", "floor", "fmax", "fmin",
        "fmod", "heaviside", "hypot", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logaddexp",
        "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "sign",
        "signbit", "sin", "sinc", "sinh", "sqrt", "tan", "tanh", "trunc", "where",
    )
}  # fmt: skip  # a table

TEMPLATES: dict[str, Template] = {
    **{op: _function(name) for op, name in _NUMPY.items()},
    "add": _operator("+", SUM), "subtract": _operator("-", SUM), "multiply": _operator("*", PRODUCT),
    "divide": _operator("/", PRODUCT), "matmul": _operator("@", PRODUCT), "remainder": _operator("%", PRODUCT),
    "floor_divide": _operator("//", PRODUCT), "power": _power, "negative": _prefix("-"), "reciprocal": _reciprocal,
    "rsqrt": _rsqrt, "square": _square, "root": _function("sqrt"), "clip": _clip, "hardtanh": _clip,
    "bitwise_and": _operator("&", AND), "bitwise_or": _operator("|", OR),
    "bitwise_xor": _operator("^", XOR), "bitwise_not": _prefix("~"),
    "left_shift": _operator("<<", SHIFT), "right_shift": _operator(">>", SHIFT),
    "equal": _compared("=="), "not_equal": _compared("!="), "less": _compared("<"), "less_equal": _compared("<="),
    "greater": _compared(">"), "greater_equal": _compared(">="),
    "relu": lambda instr, xs: call("np.maximum", xs[0], 0),
    "sigmoid": _helper("sigmoid"), "softplus": _helper("softplus"), "silu": _helper("silu"), "erf": _helper("erf"),
    "erfc": _helper("erfc"), "gelu": _helper("gelu"), "gelu_tanh": _helper("gelu_tanh"),
    "gammaln": _helper("gammaln"), "log_sigmoid": _helper("log_sigmoid"),
    "reshape": _reshape, "permute_dims": _permute, "broadcast_to": _broadcast, "astype": _astype,
    "copy": lambda instr, xs: method(xs[0], "copy"), "alias": _same, "flip": _flip, "roll": _roll,
    "tril": _triangle("tril"), "triu": _triangle("triu"), "pad": _pad, "concat": _concatenate,
    "sum": _reduction("sum"), "max": _reduction("max"), "min": _reduction("min"), "all": _reduction("all"),
    "any": _reduction("any"), "argmax": _arg("argmax"), "argmin": _arg("argmin"),
    "softmax": _softmax, "log_softmax": _softmax, "logsumexp": _logsumexp,
    "cumsum": _cumulative("cumsum"),
    "getitem": _getitem, "put_add": _put_add, "at_set": _at_set, "take_along_axis": _take_along,
    "put_along_add": _put_along, "one_hot": _one_hot,
}  # fmt: skip  # a table

# op -> the helper that it calls
HELPERS = {name: function for name, function in vars(helpers).items() if inspect.isfunction(function)}


def helper_text(names: set[str]) -> str:
    """Return the source of the helpers a program calls and of those they need, in the order of their file."""
    wanted = set(names)
    while True:
        called = {name for one in wanted for name in HELPERS[one].__code__.co_names if name in HELPERS}
        if called <= wanted:
            break
        wanted |= called
    return "\n\n".join(inspect.getsource(function) for name, function in HELPERS.items() if name in wanted)
