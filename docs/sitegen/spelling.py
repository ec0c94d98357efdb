"""Signatures as the reference writes them: those of the stubs, where a function is made as the library runs."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable
from typing import Any

from tools import signatures

# Stands between the signatures of one entry; the directives of the site split there.
NEXT = " ⏎ "
_EMPTY = inspect.Parameter.empty


def of_function(name: str, function: Callable[..., Any]) -> list[str]:
    """Return the signatures of a function, several where its result depends on its arguments."""
    if _is_op(function):
        lines = [line for line in signatures.functions(name, function) if line.startswith("def ")]
        return [_plain(line.removeprefix(f"def {name}").removesuffix(": ...").removesuffix(":")) for line in lines]
    try:
        return [_written(name, inspect.signature(function), method=False)]
    except ValueError:  # one of NumPy's, written in C
        return ["(...)"]


def of_method(cls: type, name: str, value: Any) -> list[str]:
    """Return the signatures of a method, without the instance."""
    inner = getattr(value, "__func__", value)
    if cls.__name__ == "Tensor" and _is_op(inner):
        lines = [line for line in signatures.functions(name, inner, method=True) if line.startswith("def ")]
        texts = [_plain(line.removeprefix(f"def {name}").partition("  # ")[0].rstrip(" .:")) for line in lines]
        return [re.sub(r"^\(self(, )?(?!:)", "(", text) for text in texts]
    return [_written(name, inspect.signature(inner), method=not isinstance(value, staticmethod))]


def of_class(cls: type) -> str:
    """Return the arguments that make an instance; an exception takes those of the message it stands for."""
    if issubclass(cls, BaseException | enum.Enum):
        return ""
    try:
        return _written(cls.__name__, inspect.signature(cls), method=False).partition(" -> ")[0]
    except (ValueError, TypeError):
        return ""


def _is_op(function: Callable[..., Any]) -> bool:
    """Tell whether a signature speaks of arrays, as those of the op table do."""
    if not inspect.isfunction(function):
        return False
    found = inspect.signature(function)
    given = [*found.parameters.values()]
    said = [str(found.return_annotation), *(str(parameter.annotation) for parameter in given)]
    return bool(given) and any(re.search(r"\bArray\b", text) for text in said)


def _written(name: str, found: inspect.Signature, *, method: bool) -> str:
    parameters = [*found.parameters.values()][1 if method else 0 :]
    texts = [_parameter(name, given) for given in parameters]
    result = found.return_annotation
    back = "" if result is _EMPTY or result == "None" else inspect.formatannotation(result).strip("'")
    return _plain(signatures._joined([], parameters, texts, back).removesuffix(" -> "))


def _parameter(owner: str, given: inspect.Parameter) -> str:
    """Return one argument; a default that is a value is written out, a sentinel is not."""
    text = signatures.parameter(owner, given)
    if text.endswith(" = ...") and (shown := repr(given.default)).isascii() and "<" not in shown and len(shown) < 40:
        text = text.removesuffix("...") + shown
    return re.sub(r": (Any|inspect\._empty)(?=$| = )", "", text)


def _plain(text: str) -> str:
    """Return a signature without what only a type checker needs."""
    text = re.sub(r"\b(builtins|glassgrad\.engine\.\w+)\.", "", text)
    return text.replace("npt.NDArray[Any]", "ndarray").replace("np.ndarray", "ndarray")


__all__ = ["NEXT", "of_class", "of_function", "of_method"]
