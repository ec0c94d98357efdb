"""Turn an exception of the array library into a message in the user's terms.

Called only after an op has failed, so it may be slow: it reads the user's source for the names of the operands and
finds shapes that would fit.
"""

from __future__ import annotations

import ast
import inspect
import sys
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops.core import Array, Elementwise, Primitive


def explain(prim: Primitive, args: tuple[Array, ...], params: dict[str, Any], error: Exception) -> Exception:
    """Return the exception to raise instead of `error`, which `prim` raised on `args`."""
    frame = provenance.user_frame(2)
    place = provenance.resolve(frame.f_code, frame.f_lasti)
    operands = _operands(prim, args, place, frame)
    if isinstance(error, AttributeError) and any(isinstance(arg, list | tuple) for arg in args):
        return errors.OP_TAKES_ARRAYS(op=prim.name, where=place, operands=operands)
    if isinstance(error, IndexError):
        return errors.INDEX_FAILED(op=prim.name, where=place, operands=operands, reason=_sentence(error))
    shapes = [tuple(arg.shape) for arg in args if hasattr(arg, "shape")]
    # A singular matrix also raises a ValueError, but not because of shapes.
    if isinstance(error, ValueError) and len(shapes) > 1 and not isinstance(error, np.linalg.LinAlgError):
        reason = _why(prim, shapes)
        if reason is None and isinstance(prim, Elementwise):  # the error is not about shapes
            return errors.OP_FAILED(op=prim.name, where=place, operands=operands, reason=_sentence(error))
        reason = reason or _sentence(error)
        return errors.SHAPES_DO_NOT_FIT(op=prim.name, where=place, operands=operands, reason=reason)
    if isinstance(error, TypeError):
        return errors.OP_WRONG_KIND(op=prim.name, where=place, operands=operands, reason=_sentence(error))
    details = ", ".join(f"{key}={value!r}" for key, value in params.items())
    given = f"{operands} with {details}" if details else operands
    return errors.OP_FAILED(op=prim.name, where=place, operands=given, reason=_sentence(error))


def _sentence(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _operands(prim: Primitive, args: tuple[Array, ...], place: provenance.Place, frame: FrameType) -> str:
    """Describe the arguments by the names they have in the user's source, if those can be read."""
    texts = list(place.operands)
    if texts and _is_module(texts[0], frame):
        del texts[0]  # `gg.matmul(x, w)`: the text before the dot is not an operand
    if prim.name == "at_set" and texts:
        texts = [texts[0], "the value"]  # the remaining text is the index
    texts = [part for text in texts for part in _elements(text)] if prim.joint_vjp is not None else texts
    if len(texts) > len(args):  # options between the operands: the dimension in `x.gather(1, index)`
        texts = [text for text in texts if not _is_literal(text)]
    if len(texts) < len(args) or _in_layer(frame):  # a layer was called: its weights are not in the line
        texts = _own_names(prim, len(args))
    # Further arguments of a call are options: the shape in `x.reshape(n, m)`.
    return ", ".join(_describe(text, arg) for text, arg in zip(texts, args, strict=False) if arg is not None)


def _in_layer(user: FrameType) -> bool:
    """Tell whether the op was called by a layer that the user's line calls."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not user:
        if hasattr(frame.f_locals.get("self"), "named_parameters"):
            return True
        frame = frame.f_back
    return False


def _elements(text: str) -> list[str]:
    """Return the texts of the elements of a list or tuple that is written out, as in `cat([x, y])`."""
    if not text.startswith(("[", "(")):
        return [text]
    try:
        display = ast.parse(text, mode="eval").body
    except SyntaxError:
        return [text]
    return [ast.unparse(part) for part in display.elts] if isinstance(display, ast.List | ast.Tuple) else [text]


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def _is_module(text: str, frame: FrameType) -> bool:
    """Tell whether a source text such as `nn.functional` names a module in the frame."""
    first, *rest = text.split(".")
    found = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        if not isinstance(found, ModuleType):
            return False
        found = getattr(found, name, None)
    return isinstance(found, ModuleType)


def _own_names(prim: Primitive, count: int) -> list[str]:
    """Return the primitive's own names for its arguments."""
    numbered = [f"argument {position + 1}" for position in range(count)]
    if isinstance(prim.forward, str):
        return numbered
    _namespace, *names = inspect.signature(prim.forward).parameters.values()
    positional = [name.name for name in names if name.kind is name.POSITIONAL_OR_KEYWORD]
    return positional[:count] if len(positional) >= count else numbered


def _describe(text: str, arg: Array) -> str:
    if hasattr(arg, "shape"):
        return f"{text} has shape {tuple(arg.shape)}"
    return f"{text} is {type(arg).__name__} {arg!r}" if len(repr(arg)) < 40 else f"{text} is a {type(arg).__name__}"


def _why(prim: Primitive, shapes: list[tuple[int, ...]]) -> str | None:
    """Name the dimensions that clash, and shapes that would fit."""
    if prim.name == "matmul" and all(shapes):
        left, right = shapes
        inner = right[-2] if len(right) > 1 else right[0]
        if left[-1] != inner:
            flipped = ""
            if len(right) > 1 and right[-1] == left[-1]:
                flipped = " The second one would fit transposed: .mT."
            return f"The inner sizes differ: {left[-1]} and {inner}.{flipped}"
    if prim.name == "linear" and all(shapes[:2]) and shapes[0][-1] != shapes[1][-1]:
        given, taken = shapes[0][-1], shapes[1][-1]
        return f"The last dimension of the input has {given} features; a weight of shape {shapes[1]} takes {taken}."
    if isinstance(prim, Elementwise):
        return _broadcast_clash(shapes)
    return None


def _broadcast_clash(shapes: list[tuple[int, ...]]) -> str | None:
    width = max(len(shape) for shape in shapes)
    aligned = [(1,) * (width - len(shape)) + shape for shape in shapes]
    for axis in reversed(range(width)):
        sizes = {shape[axis] for shape in aligned} - {1}
        if len(sizes) > 1:
            listed = " and ".join(str(shape[axis]) for shape in aligned)
            hint = ""
            for shape in shapes:
                others = [other for other in shapes if other is not shape]
                if len(shape) < width and others and _fits((*shape, 1), others[0]):
                    hint = f" Shape {(*shape, 1)} would fit: .unsqueeze(-1)."
            return f"Counted from the right, dimension {axis - width} has sizes {listed}; expected equal, or 1.{hint}"
    return None


def _fits(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(first, second)
    except ValueError:
        return False
    return True
