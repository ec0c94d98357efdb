"""Calls of public functions in their own examples, and the shapes and dtypes of their results."""

from __future__ import annotations

import ast
import doctest
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np

import glassgrad as gg

_PARSER = doctest.DocTestParser()
_SHAPES = r"\([^()]*\)(?:, \([^()]*\))*"
_REDUCED = re.compile(r"that of `(\w+)` without `dim`(?:, or with 1 there by `keepdim`)?(?:; \(\) over all)?")
_OPERANDS = {"other", "min", "max", "end", "value"}


@dataclass
class Call:
    """A call: its arguments by the names of the parameters, and its result."""

    function: Callable[..., Any]
    given: dict[str, Any]
    result: Any

    def tensors(self) -> dict[str, list[Any]]:
        """Return the tensors among the arguments: one, or those of a list, by the parameter's name."""
        found = {name: _arrays(value) for name, value in self.given.items()}
        return {name: arrays for name, arrays in found.items() if arrays}

    def again(self, dtypes: dict[str, str]) -> Any:
        """Call again with the tensors of these parameters in another dtype; return None if that raises an error."""
        with np.errstate(all="ignore"):  # NaN among the numbers
            changed = {
                name: _cast(value, dtypes[name]) if name in dtypes else value for name, value in self.given.items()
            }
        if "int64" in dtypes.values():  # a fraction as operand would decide by itself
            operands = {name: value for name, value in changed.items() if name in _OPERANDS and type(value) is float}
            changed |= {name: max(int(value), 1) for name, value in operands.items()}
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _call(self.function, changed)
        except Exception:  # noqa: BLE001 - which dtypes an op refuses is not asked here
            return None


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, gg.Tensor | np.ndarray):
        return [value]
    several = value if isinstance(value, list | tuple) else ()
    return list(several) if several and all(isinstance(one, gg.Tensor) for one in several) else []


def _cast(value: Any, dtype: str) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_cast(one, dtype) for one in value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # imaginary parts that are dropped
        return value.detach().astype(dtype) if isinstance(value, gg.Tensor) else value.astype(dtype)


def _call(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    bound = inspect.BoundArguments(inspect.signature(function), given)  # type: ignore[arg-type]  # any ordered mapping will do
    return function(*bound.args, **bound.kwargs)


def calls(function: Callable[..., Any]) -> Iterator[Call]:
    """Yield the calls of a function in the example of its docstring; run each one in the example and once more here."""
    names: dict[str, Any] = {"gg": gg}
    for example in _PARSER.get_examples(function.__doc__ or ""):
        if doctest.SKIP in example.options:
            continue
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.Call) and (found := _recorded(function, node, names)) is not None:
                yield found
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(example.source, names)  # noqa: S102 - examples of this repository
        except Exception:  # noqa: BLE001 - one that shows an error, or that cannot be run twice; the doctests run it
            return


def _recorded(function: Callable[..., Any], node: ast.Call, names: dict[str, Any]) -> Call | None:
    """Return the call of a node if it calls the function, as a function or as a method."""
    try:
        called = _value(node.func, names)
    except Exception:  # noqa: BLE001 - a name that a comprehension or a later line makes
        return None
    head = [called.__self__] if isinstance(called, MethodType) else []
    if inspect.unwrap(getattr(called, "__func__", called)) is not inspect.unwrap(function):
        return None
    try:
        args = list(itertools.chain.from_iterable(_given(one, names) for one in node.args))
        keywords = {one.arg: _value(one.value, names) for one in node.keywords if one.arg}
        bound = inspect.signature(function).bind(*head, *args, **keywords)
    except Exception:  # noqa: BLE001 - as above, and keywords of other libraries
        return None
    call = Call(function, dict(bound.arguments), None)
    call.result = call.again({})
    return call if call.result is not None else None


def _given(node: ast.expr, names: dict[str, Any]) -> Any:
    return _value(node.value, names) if isinstance(node, ast.Starred) else [_value(node, names)]


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(ast.unparse(node), names)  # noqa: S307 - as above


# --- dtypes -----------------------------------------------------------------------------------------


def dtype_told(made: list[Call]) -> str | None:
    """Return the rule of the result's dtype in a docstring's words, found by calls; None without arrays."""
    plain = [Call(call.function, call.given | {"other": gg.tensor(call.given["other"])}, call.result)
             for call in made if type(call.given.get("other")) in {int, float}]  # fmt: skip  # tensors for numbers
    told = {text for call in [*made, *plain] if (text := _of_one(call)) is not None}
    return max(told, key=len) if told else None


def _of_one(call: Call) -> str | None:
    results = _results(call.result)
    if results is None:
        return None
    if "dtype" in inspect.signature(call.function).parameters and "dtype" not in call.given:
        chosen = _results(Call(call.function, {**call.given, "dtype": np.dtype("float64")}, None).again({}))
        if chosen is not None and chosen[0].dtype == np.float64 != results[0].dtype:
            return f"`dtype`; without it {_of_arguments(call, results)}"
    return _of_arguments(call, results)


def _of_arguments(call: Call, results: list[Any]) -> str | None:
    texts = [_of_result(call, place) for place in range(len(results))]
    if None in texts:
        return None
    return texts[0] if len(set(texts)) == 1 else ", ".join(str(text) for text in texts)


def _results(result: Any) -> list[Any] | None:
    if isinstance(result, gg.Tensor | np.ndarray):
        return [result]
    if isinstance(result, list | tuple) and result and all(isinstance(one, gg.Tensor) for one in result):
        return list(result)
    return None


def _of_result(call: Call, place: int) -> str | None:
    def found(dtypes: dict[str, str]) -> str | None:
        results = _results(call.again(dtypes))
        return results[place].dtype.name if results is not None and place < len(results) else None

    real = [name for name, arrays in call.tensors().items() if arrays[0].dtype.kind in "fc"]
    usual = found({})
    wide = {name: {"float32": "float64", "complex64": "complex128"}.get(call.tensors()[name][0].dtype.name, "float64")
            for name in real}  # fmt: skip  # one mapping
    if not real or (found(wide) or usual) == usual:
        whole = [name for name, arrays in call.tensors().items() if arrays[0].dtype.kind in "iu"]
        if not real and whole and usual == "int64" and found(dict.fromkeys(whole, "int32")) == "int32":
            return f"that of {quoted(whole)}" if len(whole) == 1 else f"the one that {quoted(whole)} promote to"
        return "`get_default_dtype()`" if not real and usual == "float32" and _by_default(call) else usual
    deciding = [name for name in real if found({name: wide[name]}) not in {usual, None}]
    names = deciding or real
    text = f"that of {quoted(names)}" if len(names) == 1 else f"the one that {quoted(names)} promote to"
    kind = np.dtype(usual).kind if usual else "f"
    if kind == "c" and not any(call.tensors()[name][0].dtype.kind == "c" for name in names):
        text = f"the complex one of {quoted(names)}'s precision"
    elif kind == "f" and all(call.tensors()[name][0].dtype.kind == "c" for name in names):
        text = f"the real one of {quoted(names)}'s precision"
    integers = found(dict.fromkeys(real, "int64"))
    return f"{text}; integers give {integers}" if integers not in {"int64", None} else text


def _by_default(call: Call) -> bool:
    """Return whether the result follows `set_default_dtype`."""
    before = gg.get_default_dtype()
    gg.set_default_dtype(gg.float64)
    try:
        results = _results(call.again({}))
        return results is not None and results[0].dtype == np.float64
    finally:
        gg.set_default_dtype(before)


def quoted(names: list[str]) -> str:
    """Return the names of parameters in the form of a docstring."""
    *others, last = [f"`{name}`" for name in names]
    return f"{', '.join(others)} and {last}" if others else last


# --- shapes -----------------------------------------------------------------------------------------


def shape_of(result: Any) -> list[tuple[int, ...]] | None:
    """Return the shapes of a result; None if it is neither an array nor a tuple of arrays."""
    found = _results(result)
    return None if found is None else [tuple(one.shape) for one in found]


def fits(told: str, call: Call) -> bool | None:
    """Return whether a sentence about shapes agrees with a call; None if it has no form that can be evaluated."""
    shapes = shape_of(call.result)
    if shapes is None:
        return None
    expected = _expected(told, call)
    if expected is not None:
        return all(shape == expected for shape in shapes)
    patterns = re.fullmatch(rf"(?:({_SHAPES}) to )?({_SHAPES})(?:, \w[^()]*)?", told)
    if patterns is None:
        return None
    given = [tuple(array.shape) for arrays in call.tensors().values() for array in arrays]
    known = {f"`{name}`": value for name, value in call.given.items() if isinstance(value, int)}
    return _unify(_patterns(patterns[1] or ""), given, known, _patterns(patterns[2]), shapes)


def _expected(told: str, call: Call) -> tuple[int, ...] | None:
    """Return the shape that a sentence of a known form describes."""
    tensors = call.tensors()
    if match := re.fullmatch(r"that of `(\w+)`", told):
        found = tensors.get(match[1])
        return tuple(found[0].shape) if found else np.shape(call.given[match[1]])
    if match := re.fullmatch(r"the one that (.*) broadcast to", told):
        shapes = [np.shape(one) for name in re.findall(r"`(\w+)`", match[1]) for one in _every(call, name)]
        return np.broadcast_shapes(*shapes)
    if told == "()":
        return ()
    if match := re.fullmatch(r"`(\w+)`", told):
        value = call.given.get(match[1])
        value = value[0] if isinstance(value, tuple) and len(value) == 1 and not isinstance(value[0], int) else value
        return None if value is None else tuple(np.atleast_1d(value).tolist())
    if match := _REDUCED.fullmatch(told):
        return _reduced(np.shape(tensors[match[1]][0]), call)
    if told.startswith("(); without reduction"):
        return () if call.given.get("reduction") != "none" else None
    return None


def _every(call: Call, name: str) -> list[Any]:
    if name not in call.given:
        return []
    return call.tensors().get(name) or [call.given[name]]


def _reduced(shape: tuple[int, ...], call: Call) -> tuple[int, ...]:
    default = inspect.signature(call.function).parameters["dim"].default
    dim = call.given.get("dim", default if default is not inspect.Parameter.empty else None)
    dims = range(len(shape)) if dim is None else [one % len(shape) for one in np.atleast_1d(dim).tolist()]
    kept = call.given.get("keepdim", False)
    return tuple(1 if place in dims else size for place, size in enumerate(shape) if kept or place not in dims)


def _patterns(text: str) -> list[list[str]]:
    return [[size.strip() for size in one.split(",") if size.strip()] for one in re.findall(r"\(([^()]*)\)", text)]


def _unify(
    patterns: list[list[str]],
    given: list[tuple[int, ...]],
    known: dict[str, Any],
    results: list[list[str]],
    shapes: list[tuple[int, ...]],
) -> bool:
    """Return whether sizes with the same letter are equal; a letter that occurs only in results stands for any size."""
    if len(patterns) > len(given) or len(results) > len(shapes):
        return False
    pairs = [*zip(patterns, given, strict=False), *zip(itertools.cycle(results), shapes, strict=False)]
    return all(_matches(pattern, shape, known) for pattern, shape in pairs)


def _matches(pattern: list[str], shape: tuple[int, ...], known: dict[str, Any]) -> bool:
    place = pattern.index("...") if "..." in pattern else None
    if place is not None:
        after = len(pattern) - place - 1
        if len(shape) < len(pattern) - 1:
            return False
        middle = shape[place : len(shape) - after]
        if known.setdefault("...", middle) != middle:
            return False
        shape = shape[:place] + shape[len(shape) - after :]
        pattern = pattern[:place] + pattern[place + 1 :]
    if len(pattern) != len(shape):
        return False
    return all(
        int(letter) == size if letter.isdigit() else " " in letter or known.setdefault(letter, size) == size
        for letter, size in zip(pattern, shape, strict=True)
    )
