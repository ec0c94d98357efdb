"""Functions with a hand-written backward pass: whether it agrees with differences of the forward pass."""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.library import Args, Array, Kwargs, Module, Tensor
from glassgrad.doctor.parts import Unfit
from glassgrad.doctor.restoring.set_aside import aside

_MOST, _NUMBERS = 3, 1 << 14
"""The number of calls to keep of a function, and of elements of their operands."""
_STEPS = 1e-3, 2e-4
"""The steps of the differences, relative to the size of an operand; both must give the same slope."""
_SMOOTH, _WRONG = 0.02, 0.1
"""The relative distance of two differences that counts as the same, and that of a gradient that counts as wrong."""
_LEAST = 1e-6
_IN_STEPS = frozenset({"round", "sign", "floor", "ceil", "trunc", "argmax", "heaviside", "bernoulli", "topk", "sort"})
"""Ops in a forward pass whose outputs move in steps; their backward pass is something else on purpose."""
_RAISED = ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, NotImplementedError


Kind = Any
"""A class of functions, of either library."""
Apply = Callable[..., Tensor]


@dataclass
class _Function:
    """The calls of a function: whether it is of PyTorch, and the operands, arrays for tensors of real numbers."""

    kind: Kind
    apply: Apply
    torch: bool
    calls: list[tuple[Args, tuple[int, ...]]]


_functions: dict[Kind, _Function] = {}
_replaced: list[tuple[Kind, object]] = []


def listen() -> None:
    """Begin to keep the first operands of the user's functions, in the libraries that are loaded."""
    if not _replaced:
        _functions.clear()
    for kind in _bases():
        if all(kind is not known for known, _ in _replaced):
            before = vars(kind)["apply"]
            _replaced.append((kind, before))
            kind.apply = classmethod(_told(before.__func__))


def leave() -> None:
    """Stop keeping them."""
    while _replaced:
        kind, before = _replaced.pop()
        kind.apply = before


def _bases() -> Iterator[Kind]:
    from glassgrad.engine.function import Function

    yield Function
    torch = provenance.pytorch()
    if torch is not None and "apply" in vars(torch.autograd.Function):
        yield torch.autograd.Function


def _told(apply: Apply) -> Apply:
    def told(kind: Kind, *args: object, **kwargs: object) -> Tensor:
        known = _functions.get(kind)
        if known is None or len(known.calls) < _MOST:
            _note(kind, apply, args, kwargs)
        return apply(kind, *args, **kwargs)

    return library.untraced(told, apply)


def _note(kind: Kind, apply: Apply, args: Args, kwargs: Kwargs) -> None:
    code = getattr(kind.backward, "__code__", None)
    tensors = [one for one in args if library.is_tensor(one)]
    steps = _IN_STEPS & {name.rstrip("_") for name in getattr(kind.forward, "__code__", _note.__code__).co_names}
    if code is None or provenance.is_internal(code.co_filename) or kwargs or not tensors or steps:
        return
    known = _functions.setdefault(kind, _Function(kind, apply, library.is_torch(tensors[0]), []))
    arrays = [library.numbers(one) if library.is_tensor(one) else one for one in args]
    wanted = [at for at, one in enumerate(args) if library.is_tensor(one) and one.requires_grad]
    real = all(_is_real(arrays[at]) for at in wanted)
    if wanted and real and sum(np.size(one) for one in arrays if isinstance(one, np.ndarray)) <= _NUMBERS:
        copies = tuple(np.array(one) if isinstance(one, np.ndarray) else one for one in arrays)
        known.calls.append((copies, tuple(wanted)))


def _is_real(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def unfit(model: Module) -> tuple[Unfit, ...]:
    """Return the functions whose backward pass does not fit; ask before the last listener leaves.

    The calls that this takes do not change the model or the random generators.
    """
    found: list[Unfit] = []
    with aside(model) if _functions else contextlib.nullcontext():
        for one in _functions.values():
            with contextlib.suppress(*_RAISED):
                found += _wrong(one)
    return tuple(found)


def _wrong(function: _Function) -> Iterator[Unfit]:
    """Yield the first operand whose gradient is wrong in a call."""
    random = np.random.default_rng(0)
    for args, wanted in function.calls:
        for operand in wanted:
            seen = _compared(function, args, operand, random)
            if seen is not None:
                given, right, at = seen
                yield Unfit(function.kind.__name__, *_lines(function.kind), operand, given, right, at)
                return


def _compared(
    function: _Function, args: Args, operand: int, random: np.random.Generator
) -> tuple[float, float, float | None] | None:
    """Return a gradient, the difference that it should equal, and the element; None if they agree or nothing is known.

    What is meant to differ is left out: a forward pass that changes nothing (a reversed, scaled or clipped gradient),
    and outputs that move in steps (a gradient that passes through a rounding).
    """
    x = np.asarray(args[operand], np.float64)
    outputs, again = (_outputs(function, args, operand, x) for _ in range(2))
    if outputs is None or again is None or not np.array_equal(outputs, again):
        return None  # it draws random numbers, or returns several results
    if outputs.shape == x.shape and np.allclose(outputs, x, rtol=1e-5, atol=1e-7):
        return None
    direction = random.uniform(0.5, 1.5, x.shape) * np.maximum(np.abs(x), np.abs(x).mean() + 1e-3)
    first, second = (_slope(function, args, operand, x, direction * step) / step for step in _STEPS)
    smooth = np.abs(first - second) <= _SMOOTH * np.maximum(np.abs(first), np.abs(second)) + _LEAST
    if outputs.shape == x.shape and _by_element(function, args, operand, x, outputs, random):
        given = _gradient(function, args, operand, x, np.ones_like(outputs))
        return None if given is None else _of_elements(given, second / direction, smooth, x)
    cotangent = random.uniform(0.5, 1.5, outputs.shape)
    given = _gradient(function, args, operand, x, cotangent)
    if given is None or not smooth.all():
        return None
    moved, told = float((cotangent * second).sum()), float((given * direction).sum())
    size = float((cotangent * np.abs(second)).sum())
    wrong = size > _LEAST and abs(moved - told) > _WRONG * size
    return (told, moved, None) if wrong else None


def _of_elements(given: Array, wanted: Array, smooth: Array, x: Array) -> tuple[float, float, float] | None:
    """Return the worst element of a function that works element by element, and its gradients, unless they agree."""
    moves = smooth & (np.abs(wanted) > 1e-3 * np.abs(wanted).max(initial=0.0)) & (np.abs(wanted) > _LEAST)
    apart = np.abs(given - wanted)
    wrong = moves & (apart > _WRONG * np.abs(wanted))
    if not moves.any() or wrong.sum() < 0.02 * moves.sum():
        return None
    at = np.unravel_index(int(np.argmax(np.where(wrong, apart, 0.0))), x.shape)
    return float(given[at]), float(wanted[at]), float(x[at])


def _by_element(
    function: _Function, args: Args, operand: int, x: Array, outputs: Array, random: np.random.Generator
) -> bool:
    """Tell whether each output depends on its own element only."""
    chosen = random.random(x.shape) < 0.5
    moved = _outputs(function, args, operand, np.where(chosen, x * 1.01 + 0.01, x))
    return moved is not None and bool(np.array_equal(moved[~chosen], outputs[~chosen]))


def _slope(function: _Function, args: Args, operand: int, x: Array, step: Array) -> Array:
    above, below = (_outputs(function, args, operand, x + sign * step) for sign in (1, -1))
    assert above is not None
    assert below is not None
    return np.asarray((above - below) / 2)


def _tensors(function: _Function, args: Args, operand: int, x: Array) -> list[Tensor]:
    given = [x if at == operand else one for at, one in enumerate(args)]
    real = [one.astype(np.float64) if _is_real(one) else one for one in given]
    return [library.tensor_of(one, function.torch) if isinstance(one, np.ndarray) else one for one in real]


def _outputs(function: _Function, args: Args, operand: int, x: Array) -> Array | None:
    result = function.apply(function.kind, *_tensors(function, args, operand, x))
    array = library.numbers(result) if library.is_tensor(result) else None
    return None if array is None or array.dtype.kind != "f" else np.array(array, np.float64)


def _gradient(function: _Function, args: Args, operand: int, x: Array, cotangent: Array) -> Array | None:
    """Return the gradient of an operand; None if the function gives none."""
    tensors = _tensors(function, args, operand, x)
    tensors[operand].requires_grad_()
    result = function.apply(function.kind, *tensors)
    if not result.requires_grad:
        return None
    result.backward(library.tensor_of(cotangent.astype(library.values(result).dtype), function.torch))
    given = library.gradient(tensors[operand])
    return None if given is None else np.array(given, np.float64)


def _lines(kind: Kind) -> tuple[str, str]:
    """Return the line that begins a backward pass, and that of its last `return`."""
    lines, first = inspect.getsourcelines(kind.backward)
    (tree,) = ast.parse(textwrap.dedent("".join(lines))).body
    ends = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return)]
    file = provenance.shorten(kind.backward.__code__.co_filename)
    return f"{file}:{first + tree.lineno - 1}", f"{file}:{first + max(ends, default=tree.lineno) - 1}"
