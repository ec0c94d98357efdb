"""Read the public functions of the running library and write their signatures for type checkers, for `stubs.py`.

Ops declare `Array` for everything that an interpreter accepts; a user sees a `Tensor`. If an op declares `Any` for an
option, the name of the option determines its type (`OPTIONS`). A function returns a `Tensor`, unless its annotation
says otherwise or `OVERLOADS` lists it, because its result depends on its arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from glassgrad.ops.names import KEYWORDS, PUBLIC

# The types of options for which the source says `Any`.
OPTIONS = {
    "dtype": "DTypeLike | None", "device": "Device", "generator": "Generator | None", "dim": "Ints | None",
    "dims": "Ints | None", "axis": "Ints | None", "shifts": "Ints", "tensors": "Tensors", "memory_format": "str | None",
    "sizes": "Ints", "shape": "Ints", "size": "Ints | None", "kernel_size": "Ints", "output_size": "Sizes",
    "stride": "Ints | None", "window_shape": "Ints", "bias": "TensorLike | None", "source": "Ints",
    "destination": "Ints", "indices_or_sections": "Ints | TensorLike", "input": "TensorLike", "other": "TensorLike",
    "value": "TensorLike | None", "fill_value": "Number", "min": "TensorLike | None", "max": "TensorLike | None",
    "start": "Number", "end": "Number | None", "step": "Number", "src": "TensorLike | None", "dim0": "Ints | None",
    "repeats": "Ints | TensorLike", "weights": "TensorLike | None", "condition": "TensorLike", "values": "TensorLike",
    "s": "Ints | None", "ord": "builtins.float | builtins.str | None", "atol": "TensorLike | None",
    "rtol": "TensorLike | None", "matrices": "Tensor", "operands": "TensorLike",
    "q": "TensorLike | Sequence[builtins.float]",
}  # fmt: skip  # a table
# The types of arguments of single functions.
ARGUMENTS = {
    ("full", "size"): "Ints", ("new_full", "size"): "Ints", ("as_strided", "size"): "Ints",
    ("as_strided", "stride"): "Ints", ("cond", "p"): "builtins.float | builtins.str | None",
}  # fmt: skip  # a table

# Results that depend on the arguments; `self` stands for the first argument.
_EXTREME = (
    "(self, *, other: None = None) -> Tensor",
    "(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme",
    "(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme",
    "(self, dim: Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor",
    "(self, *, axis: Sequence[builtins.int] | None, keepdims: builtins.bool = False) -> Tensor",
    "(self, other: Tensor | npt.NDArray[Any]) -> Tensor",
)
_RANKED = (
    "(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor",
    "(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extreme",
    "(self, *, axis: builtins.int, keepdims: builtins.bool = False) -> Extreme",
)
_EACH = (
    "(self) -> Tensor",
    "(self, *tensors: TensorLike) -> builtins.tuple[Tensor, ...]",
)
OVERLOADS: dict[str, tuple[str, ...]] = {
    "max": _EXTREME,
    "min": _EXTREME,
    "median": _RANKED,
    "nanmedian": _RANKED,
    "nonzero": (
        "(self, as_tuple: Literal[False] = False) -> Tensor",
        "(self, as_tuple: Literal[True]) -> builtins.tuple[Tensor, ...]",
    ),
    "atleast_1d": _EACH,
    "atleast_2d": _EACH,
    "atleast_3d": _EACH,
    "where": (
        "(self) -> builtins.tuple[Tensor, ...]",
        "(self, input: TensorLike, other: TensorLike) -> Tensor",
    ),
}
# The types of results for which the source says `Any`.
RESULTS = {
    "slogdet": "SlogdetResult", "svd": "builtins.tuple[Tensor, Tensor, Tensor]", "lu": "builtins.tuple[Tensor, ...]",
    "stride": "Any", "type": "Any", "to_sparse": "Any", "to_sparse_coo": "Any", "unique": "Any",
    "unique_consecutive": "Any", "cartesian_prod": "Tensor", "combinations": "Tensor",
    "__array_function__": "Any", "__array_ufunc__": "Any", "__array_namespace__": "Any", "__dlpack__": "Any",
}  # fmt: skip  # a table

# Words that are names both of tensors' methods and of dtypes.
_BUILTIN = re.compile(r"(?<![\w.])(bool|int|float|complex|type|str|list|dict|set|tuple|range|slice|object)(?!\w)")
_NUMPYS = {"dim": "axis", "keepdim": "keepdims", "correction": "ddof"}
assert set(_NUMPYS.values()) <= set(KEYWORDS)
_EMPTY = inspect.Parameter.empty
_PLAIN = (bool, int, float, str, type(None))


def functions(name: str, function: Callable[..., Any], *, method: bool = False) -> list[str]:
    """Return the lines that declare a function, or a method whose first argument is `self`."""
    signatures = _signatures(name, function, method)
    head = ["@overload"] if len(signatures) > 1 else []
    lines = []
    for place, signature in enumerate(signatures):
        lines += head
        ignored = "  # type: ignore[override]  # by elements, as in NumPy" if name in {"__eq__", "__ne__"} else ""
        if place:
            lines.append(f"def {name}{signature}: ...")
        else:
            lines += [f"def {name}{signature}:{ignored}", f"    {docstring(function)}"]
    return lines


def docstring(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a function's docstring, as a literal that formatters leave unchanged."""
    text = inspect.getdoc(function) or ""
    paragraph = text.partition("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return (
        f'"""{paragraph}"""'
        if paragraph and not paragraph.endswith('"')
        else f'"""{paragraph} """'
        if paragraph
        else "..."
    )


def _signatures(name: str, function: Callable[..., Any], method: bool) -> list[str]:
    listed = None if method and name == "where" else OVERLOADS.get(name)  # the method is not the function
    if listed is not None:
        return [text if method else text.replace("(self", f"({_first(function)}: TensorLike") for text in listed]
    parameters = list(inspect.signature(function).parameters.values())
    result = inspect.signature(function).return_annotation
    first = 1 if method else 0
    arrays = [p for p in parameters if str(p.annotation) == "Array" and p.kind is p.POSITIONAL_OR_KEYWORD]
    own = [parameter(name, p) for p in parameters[first:]]
    back = _result(name, result, method)
    as_given = _text(result) != "Tensor"  # an array gives an array
    if as_given and not method and len(arrays) == 1 and parameters[0] is arrays[0] and _elementwise_in(parameters):
        own[0] = own[0].replace("TensorLike", "TensorOrArray", 1)
        back = back.replace("Tensor", "TensorOrArray") if back == "Tensor" else back
    start = ["self"] if method else []
    written = [_joined(start, parameters[first:], own, back)]
    if any(p.name == "return_indices" for p in parameters) and back != "Any":
        written = [text.replace("return_indices: builtins.bool", "return_indices: Literal[False]") for text in written]
        pair = [p.replace(kind=p.KEYWORD_ONLY) if p.name == "return_indices" else p for p in parameters[first:]]
        asked = [re.sub("^return_indices.*", "return_indices: Literal[True]", text) for text in own]
        written.append(_joined(start, pair, asked, "builtins.tuple[Tensor, Tensor]"))
    numpys = _numpys(parameters[first:], own) if _takes_numpys(function) else None
    if numpys is not None:
        written.append(_joined(start, *numpys, back))
    return written


def _first(function: Callable[..., Any]) -> str:
    """Return the name of the first argument; for a variable number of arguments, a name not meant as a keyword."""
    first = next(iter(inspect.signature(function).parameters.values()))
    return first.name if first.kind is first.POSITIONAL_OR_KEYWORD else "_x"


def _elementwise_in(parameters: list[inspect.Parameter]) -> bool:
    """Return whether only the first argument may be a tensor."""
    return not any(OPTIONS.get(p.name, "").startswith("Tensor") and str(p.annotation) == "Any" for p in parameters[1:])


def _joined(start: list[str], parameters: list[inspect.Parameter], written: list[str], result: str) -> str:
    """Return a signature, with the marks of positional and keyword arguments."""
    parts = list(start)
    kinds = [p.kind for p in parameters]
    for place, (given, text) in enumerate(zip(parameters, written, strict=True)):
        if given.kind is not given.POSITIONAL_ONLY and kinds[place - 1 : place] == [given.POSITIONAL_ONLY]:
            parts.append("/")
        if given.kind is given.KEYWORD_ONLY and not {given.KEYWORD_ONLY, given.VAR_POSITIONAL} & set(kinds[:place]):
            parts.append("*")
        parts.append(text)
    if kinds and kinds[-1] is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)}) -> {result}"


def _takes_numpys(function: Callable[..., Any]) -> bool:
    """Return whether a function is in the op table, or writes the result of such a function into its first argument."""
    return function in PUBLIC.values() or getattr(function, "__wrapped__", None) in PUBLIC.values()


def _numpys(
    parameters: list[inspect.Parameter], written: list[str]
) -> tuple[list[inspect.Parameter], list[str]] | None:
    """Return the parameters with NumPy's names for `dim`, `keepdim` and `correction`, by keyword; None without them."""
    if not {p.name for p in parameters} & set(_NUMPYS):
        return None
    found: list[inspect.Parameter] = []
    texts: list[str] = []
    later: list[tuple[inspect.Parameter, str]] = []
    for parameter, text in zip(parameters, written, strict=True):
        ours = _NUMPYS.get(parameter.name)
        if ours is None and parameter.kind is not parameter.KEYWORD_ONLY and not later:
            found.append(parameter)
            texts.append(text)
        elif parameter.kind is not parameter.VAR_KEYWORD:
            renamed = parameter.replace(name=ours or parameter.name, kind=parameter.KEYWORD_ONLY)
            later.append((renamed, text.replace(parameter.name, ours, 1) if ours else text))
    found += [parameter for parameter, _ in later]
    return found, texts + [text for _, text in later]


def parameter(owner: str, given: inspect.Parameter) -> str:
    """Return the declaration of one argument, with type and default."""
    text = _typed(owner, given)
    stars = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "")
    if given.default is _EMPTY:
        return f"{stars}{given.name}: {text}"
    plain = type(given.default) in _PLAIN or given.default in ((), (-2, -1), (0, 1))
    return f"{given.name}: {text} = {given.default!r}" if plain else f"{given.name}: {text} = ..."


# Names of types in our source that stubs spell out.
_ALIASES = {"DType": "DTypeLike | None", "Function": "Callable[..., Any]"}


def _typed(owner: str, parameter: inspect.Parameter) -> str:
    said = _text(parameter.annotation)
    said = _ALIASES.get(said, said)
    if (owner, parameter.name) in ARGUMENTS:
        return ARGUMENTS[owner, parameter.name]
    if said == "Any":
        known = OPTIONS.get(parameter.name, "Any")
        return known.removesuffix(" | None") if parameter.kind is parameter.VAR_POSITIONAL else known
    if parameter.name == "other" and said == "Tensor":
        return "Tensor"
    return _builtins(re.sub(r"\bArray\b", "TensorLike", said))


def _result(name: str, annotation: Any, method: bool) -> str:
    said = _text(annotation)
    if name in RESULTS and not said.endswith("Result"):  # `linalg.svd` says more than `svd`
        return RESULTS[name]
    if method and name.endswith("_") and (said in {"Tensor", "Any", "Array"}) and not name.endswith("__"):
        return "Self"
    if method and name.startswith("__i") and name != "__invert__":
        return "Self"
    if said == "Any":
        return "Tensor"
    return _builtins(re.sub(r"\bArray\b", "Tensor", said))


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _builtins(text: str) -> str:
    text = re.sub(r"\bnp\.ndarray(\[Any, Any\])?", "npt.NDArray[Any]", text)
    return _BUILTIN.sub(r"builtins.\1", text).replace("devices.", "")
