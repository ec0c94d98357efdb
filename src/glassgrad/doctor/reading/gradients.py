"""The modules and parameters that a backward pass from a value reaches, and the places that cut the gradient off."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from glassgrad.doctor.reading.actors import modules
from glassgrad.doctor.reading.bindings import is_container
from glassgrad.doctor.reading.flow import EACH, Value, flow, frames_of
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import arguments, is_name, set_by
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument, constant
from glassgrad.doctor.reading.values import LOSSES

_CUTTING = named(
    "detach item numpy tolist argmax argmin long int bool eq ne gt lt ge le round sign floor ceil size numel dim "
    "isnan isinf topk_indices data_ptr nelement argsort one_hot multinomial bernoulli"
)
_MAKING = named("tensor as_tensor from_numpy array asarray FloatTensor LongTensor Tensor IntTensor BoolTensor")
_DRAWN = named(
    "rand randn randint randperm zeros ones empty full arange linspace eye normal rand_like randn_like zeros_like "
    "ones_like full_like empty_like manual_seed tril triu"
)
_BUILTIN_CUTS = named("int float bool len range round str isinstance print")
_BUILTINS = named("sum max min abs list tuple zip enumerate reversed sorted next iter map filter dict set pow")
_TAKEN = named("indices shape grad dtype device ndim requires_grad grad_fn is_leaf")
_DISTRIBUTIONS = frozenset({"sample"})
_BEST = frozenset({"max", "min", "sort", "topk", "median"})
"""Methods whose second result is indices."""
_INDEXING = frozenset({"gather", "index_select", "take_along_dim", "take"})


@dataclass(frozen=True)
class Reach:
    """The modules and parameters that a backward pass from a value reaches.

    Attributes:
        learns: the expressions that make the modules and parameters with a gradient.
        cut: the expressions that make those without one, each with the place that cuts it off.
        known: whether all code on the path is known; data of unknown origin counts as known.
    """

    learns: frozenset[Value] = frozenset()
    cut: tuple[tuple[Value, ast.expr | ast.stmt], ...] = ()
    known: bool = True

    def and_(self, other: Reach) -> Reach:
        """Return the union of two reaches."""
        return Reach(self.learns | other.learns, (*self.cut, *other.cut)[:40], self.known and other.known)

    def cut_by(self, node: ast.expr | ast.stmt) -> Reach:
        """Return the reach after a place that cuts off every gradient."""
        return Reach(frozenset(), (*self.cut, *((one, node) for one in self.learns))[:40], self.known)


NOTHING = Reach()
_UNKNOWN = Reach(known=False)


def reach(program: Program, value: Value | ast.expr) -> Reach:
    """Return the modules and parameters that a backward pass from a value reaches."""
    value = value if isinstance(value, Value) else Value(value)
    return _Walk(program).of(value)


class _Walk:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._flow = flow(program)
        held = program.memo.setdefault("reach", {})
        assert isinstance(held, dict)
        self._memo: dict[Value, Reach] = held
        self._depth = 0

    def of(self, value: Value) -> Reach:
        if value in self._memo:
            return self._memo[value]
        if self._depth > 30:
            return _UNKNOWN
        self._memo[value] = NOTHING  # a value that depends on itself: its other sources decide
        self._depth += 1
        try:
            ends = self._flow.ends(value)
            if any(is_container(one.node) and not one.path for one in ends):
                ends = (*ends, *self._flow.ends(Value(value.node, value.frame, (*value.path, EACH))))
            found = self._blocked(value, self._all(ends))
        finally:
            self._depth -= 1
        self._memo[value] = found
        return found

    def _all(self, ends: Iterable[Value]) -> Reach:
        total = NOTHING
        for one in ends:
            total = total.and_(self._blocked(one, self._end(one)))
        return total

    def _blocked(self, value: Value, found: Reach) -> Reach:
        """Return the reach of a value, which is empty if gradients are off where the script computes it."""
        if not found.learns:
            return found
        places: list[ast.AST] = [value.node, *(frame.call for frame in frames_of(value.frame))]
        off = next((block for place in places if (block := switched_off(self._program, place)) is not None), None)
        return found if off is None else found.cut_by(off)

    def _each(self, nodes: Iterable[ast.expr], value: Value) -> Reach:
        total = NOTHING
        for one in nodes:
            inner = one.value if isinstance(one, ast.Starred) else one
            total = total.and_(self.of(Value(inner, value.frame)))
        return total

    def _end(self, value: Value) -> Reach:
        node = value.node
        if isinstance(node, ast.Call):
            return self._call(node, value)
        if isinstance(node, ast.Compare):
            return self._each((node.left,), value).cut_by(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, value)
        inner = _inner(node)
        if inner is not None:
            return self._each(inner, value)
        return NOTHING if isinstance(node, ast.Constant | ast.Name | ast.JoinedStr | ast.Lambda) else _UNKNOWN

    def _attribute(self, node: ast.Attribute, value: Value) -> Reach:
        if self._program.names.full(node):
            return NOTHING
        held = modules(self._program, Value(node.value, value.frame))
        if held is not None:
            return Reach(frozenset(one.made for one in held))  # the weight of a layer
        inner = self.of(Value(node.value, value.frame)) if not _is_self(node.value) else NOTHING
        if node.attr == "data":
            return inner.cut_by(node)
        return NOTHING if node.attr in _TAKEN else inner

    # --- calls ---

    def _call(self, call: ast.Call, value: Value) -> Reach:
        program = self._program
        full = program.names.full(call.func)
        given = arguments(call)
        if full.startswith("torch."):
            return self._library(call, last(full), value)
        if full.startswith(("numpy.", "math.", "random.")):
            return self._each(given, value).cut_by(call)
        held = modules(program, Value(call.func, value.frame))
        if held is not None:
            inner = self._each(given, value)
            if all(one.owner is None and (one.name in LOSSES or one.name.endswith("Loss")) for one in held):
                return inner
            return inner.and_(Reach(frozenset(one.made for one in held)))
        if isinstance(call.func, ast.Attribute) and not full:
            return self._method(call, call.func, given, value)
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in _BUILTIN_CUTS:
            return self._each(given, value).cut_by(call)
        inner = self._each(given, value)
        return inner if name in _BUILTINS else inner.and_(_UNKNOWN)

    def _library(self, call: ast.Call, name: str, value: Value) -> Reach:
        given = arguments(call)
        if name == "Parameter" or constant(argument(call, "requires_grad")) is True:
            return Reach(frozenset({value}))
        if name in _MAKING | _DRAWN and self._is_switched_on(call):
            return Reach(frozenset({value}))
        if name in _MAKING or name in _CUTTING:
            return self._each(given, value).cut_by(call)
        if name in _DRAWN or name.endswith("DataLoader"):
            return NOTHING
        full = self._program.names.full(call.func)
        if full == f"torch.nn.{name}" and name[:1].isupper():
            return Reach(frozenset({value}))
        return self._each(given, value)

    def _is_switched_on(self, call: ast.Call) -> bool:
        """Tell whether a later statement sets `requires_grad` of a new tensor."""
        program = self._program
        statement = program.statement(call) if call in program.parents else None
        targets = set_by(statement)
        sets = [one for one in program.every(ast.Attribute) if one.attr in {"requires_grad", "requires_grad_"}]
        return any(ast.unparse(one.value) in targets for one in sets)

    def _method(self, call: ast.Call, function: ast.Attribute, given: list[ast.expr], value: Value) -> Reach:
        inner = self._each([function.value], value) if not _is_self(function.value) else _UNKNOWN
        held = modules(self._program, Value(function.value, value.frame)) if not _is_self(function.value) else None
        if held is not None:
            return self._each(given, value).and_(Reach(frozenset(one.made for one in held), known=False))
        index = function.attr in _BEST and value.path[:1] == (1,)
        if function.attr in _CUTTING or function.attr in _DISTRIBUTIONS or index:
            return inner.cut_by(call)
        if function.attr in _INDEXING:
            return inner
        if function.attr == "requires_grad_":
            return inner.and_(Reach(frozenset({value})))
        return inner.and_(self._each(given, value))


def _inner(node: ast.expr) -> list[ast.expr] | None:
    """Return the operands that an expression passes gradients to; None for other kinds of expressions."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Tuple | ast.List):
        return list(node.elts)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return [node.elt]
    return list(node.values) if isinstance(node, ast.Dict) else None


def _is_self(node: ast.expr) -> bool:
    return is_name(node, "self")


def switched_off(program: Program, node: ast.AST) -> ast.expr | None:
    """Return the block or the decorator that switches gradients off around a node."""
    for one in program.outward(node):
        if isinstance(one, ast.With):
            for item in one.items:
                if _switches(program, item.context_expr):
                    return item.context_expr
        if isinstance(one, FUNCTIONS):
            return next((mark for mark in one.decorator_list if _switches(program, mark)), None)
    return None


def _switches(program: Program, node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return last(program.names.full(function)) in {"no_grad", "inference_mode"}
