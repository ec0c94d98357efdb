"""Follow a value from its use to the expressions that made it, through casts, shapes, stacks and selections."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.flow import EACH, Value, flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import indices, is_name, method_of
from glassgrad.doctor.reading.program import Program

_KEEPING = named(
    "to float double half long int bool astype type type_as view reshape flatten ravel squeeze unsqueeze clone copy "
    "contiguous detach numpy cpu cuda transpose permute swapaxes requires_grad_ expand repeat repeat_interleave tolist "
    "index_select values to_numpy items keys pin_memory"
)
"""Methods whose result holds the numbers of their object."""
_WRAPPING = named(
    "tensor as_tensor from_numpy asarray array FloatTensor LongTensor Tensor IntTensor ascontiguousarray atleast_2d "
    "expand_dims unsqueeze squeeze reshape flatten DataLoader TensorDataset Subset list tuple sorted float32 int64"
)
_JOINING = named("stack cat concat concatenate hstack vstack column_stack dstack")
REORDERING = named(
    "flip fliplr flipud roll sort sorted argsort permutation shuffle randperm sample choice rot90 shuffled"
)
"""Functions that put numbers into another order."""
_ATTRIBUTES = frozenset({"T", "mT", "data", "values"})
_MOST = 240


@dataclass(frozen=True)
class Chain:
    """The values between a use and its origins.

    Attributes:
        values: in the order of the search, the use first.
        ends: the expressions that make the value.
    """

    values: tuple[Value, ...]
    ends: tuple[Value, ...]

    @property
    def lines(self) -> frozenset[int]:
        """The lines of the script on the way."""
        return frozenset(one.node.lineno for one in self.values if hasattr(one.node, "lineno"))


def chain(program: Program, *uses: Value) -> Chain:
    """Return the way from the uses of a value to the expressions that make it."""
    known, ends = flow(program), []
    waiting = list(uses)
    seen: dict[Value, None] = {}
    while waiting and len(seen) < _MOST:
        one = waiting.pop(0)
        if one in seen:
            continue
        seen[one] = None
        before = known.before(one)
        before = list(inner(program, one)) if before is None else before
        if not before and _makes(one.node):
            ends.append(one)
        waiting = [*before, *waiting]
    return Chain(tuple(seen), tuple(ends))


def _makes(node: ast.expr) -> bool:
    """Tell whether an expression makes numbers, and is not an empty start such as None or []."""
    if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set):
        return bool(getattr(node, "elts", None) or getattr(node, "keys", None))
    return not isinstance(node, ast.Constant | ast.Name | ast.Lambda | ast.JoinedStr)


def inner(program: Program, value: Value) -> Iterator[Value]:
    """Yield the value whose numbers an expression passes on; nothing if it makes new ones."""
    node, frame, path = value.node, value.frame, value.path
    is_part = isinstance(node, ast.Subscript) and not is_cut(program, node)
    if isinstance(node, ast.Subscript | ast.Attribute) and (is_part or getattr(node, "attr", "") in _ATTRIBUTES):
        yield Value(node.value, frame, path)
    elif isinstance(node, ast.Call):
        full = program.names.full(node.func)
        name = last(full) or getattr(node.func, "id", method_of(node))
        if isinstance(node.func, ast.Attribute) and not full and name in _KEEPING:
            yield Value(node.func.value, frame, path)
        elif node.args and name in _WRAPPING and not isinstance(node.func, ast.Attribute if not full else ast.Lambda):
            if not isinstance(node.args[0], ast.List | ast.Tuple):
                yield Value(node.args[0], frame, path)
        elif node.args and full and name in _JOINING:
            yield Value(node.args[0], frame, path if path[:1] == (EACH,) else (EACH, *path))


def is_cut(program: Program, node: ast.Subscript) -> bool:
    """Tell whether a subscript takes a stretch or one place, as `x[1:]` or `x[end]` do: these may be what is wrong."""
    parts = indices(node)
    if any(isinstance(one, ast.Slice) and (one.lower or one.upper) for one in parts):
        return True
    return any(isinstance(one, ast.BinOp) or _counts(program, one) for one in parts)


def _counts(program: Program, node: ast.expr) -> bool:
    """Tell whether an index is the variable of a loop over `range`."""
    bound = program.bound(node)
    loop = bound.statement if bound is not None else None
    counted = loop.iter if isinstance(loop, ast.For | ast.comprehension) else None
    return isinstance(counted, ast.Call) and is_name(counted.func, "range")
