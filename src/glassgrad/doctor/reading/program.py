"""A script as a program: its classes, functions and scopes, and what its names hold."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from glassgrad.doctor.reading.names import Names, last
from glassgrad.doctor.reading.nodes import Kind, ident, is_negative, method_of, of_self

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
Loop = ast.For | ast.AsyncFor | ast.While
LOOPS = ast.For, ast.AsyncFor, ast.While
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef
_SCOPES = ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef
_MODULES = frozenset({"LightningModule", "PreTrainedModel", "GenerationMixin"})
"""Classes of other libraries that are modules."""
DEEPEST = 8
"""The number of names and calls that are followed from one place to the next."""


@dataclass(frozen=True)
class Bound:
    """A value that a statement binds to a name: `value`, or with `item` a part of it; None for an unknown value.

    `path` has the indices of nested parts, the outer one first, as in `for i, (x, y) in enumerate(loader)`.
    """

    value: ast.expr | None
    statement: ast.AST
    item: int | None = None
    path: tuple[int, ...] = ()

    @property
    def line(self) -> int:
        """The line of the statement."""
        return int(getattr(self.statement, "lineno", 0))


@dataclass
class Class:
    """A class of the script, and what its methods assign to `self`."""

    node: ast.ClassDef
    bases: tuple[str, ...]
    methods: dict[str, Function]
    attributes: dict[str, list[Bound]] = field(default_factory=lambda: defaultdict(list))
    is_module: bool = False


class Program:
    """The facts about a script that rules look up."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.memo: dict[str, object] = {}
        self.names = Names(tree)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        self._collect(tree)
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self._calls_of: dict[str, list[ast.Call]] = defaultdict(list)
        for call in self.calls:
            if isinstance(call.func, ast.Name):
                self._calls_of[call.func.id].append(call)
            elif isinstance(call.func, ast.Attribute):
                self._calls_of[f".{call.func.attr}"].append(call)
        self.functions = {node.name: node for node in self.nodes if isinstance(node, FUNCTIONS)}
        self._classes = {node: self._class(node) for node in self.nodes if isinstance(node, ast.ClassDef)}
        # Notebooks define a class again and again: a name means the last one, a method belongs to its own.
        self.classes = {node.name: one for node, one in self._classes.items()}
        self._bound: dict[tuple[Scope, str], list[Bound]] = defaultdict(list)
        for node in self.nodes:
            self._bind(node)
        for one in self._classes.values():
            one.is_module = self._is_module(one, 0)

    # --- the tree ---

    def _collect(self, root: ast.Module) -> None:
        waiting: list[ast.AST] = [root]
        while waiting:
            node = waiting.pop()
            self.nodes.append(node)
            inner = list(ast.iter_child_nodes(node))
            self.parents.update(dict.fromkeys(inner, node))
            waiting += reversed(inner)

    def outward(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def every(self, kind: type[Kind]) -> list[Kind]:
        """Return the nodes of a kind in the order of the source."""
        return [one for one in self.nodes if isinstance(one, kind)]

    def nearest(self, node: ast.AST, kind: type[Kind]) -> Kind | None:
        """Return the innermost node of a kind around a node."""
        return next((one for one in self.outward(node) if isinstance(one, kind)), None)

    def around(self, node: ast.AST) -> Function | ast.Module:
        """Return the function around a node, or the script."""
        return self.function(node) or self.tree

    def heads(self, node: ast.AST) -> list[ast.expr]:
        """Return what opens the `with` blocks around a node, and the decorators of its function."""
        blocks = [one for one in self.outward(node) if isinstance(one, ast.With)]
        function = self.function(node)
        marks = function.decorator_list if function is not None else []
        return [*(item.context_expr for one in blocks for item in one.items), *marks]

    def scope(self, node: ast.AST) -> Scope:
        """Return the function, class or module whose names a node sees first."""
        return next((one for one in self.outward(node) if isinstance(one, _SCOPES)), self.tree)

    def function(self, node: ast.AST) -> Function | None:
        """Return the function around a node."""
        return next((one for one in self.outward(node) if isinstance(one, FUNCTIONS)), None)

    def owner(self, node: ast.AST) -> Class | None:
        """Return the class around a node."""
        around = self.nearest(node, ast.ClassDef)
        return None if around is None else self._classes[around]

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(one for one in self.outward(node) if isinstance(one, ast.stmt))

    def loops(self, node: ast.AST) -> list[Loop]:
        """Return the loops around a node within its function, the innermost first."""
        found: list[Loop] = []
        for one in self.outward(node):
            if isinstance(one, FUNCTIONS):
                break
            if isinstance(one, LOOPS):
                found.append(one)
        return found

    # --- classes ---

    def _class(self, node: ast.ClassDef) -> Class:
        methods = {one.name: one for one in node.body if isinstance(one, FUNCTIONS)}
        bases = tuple(self.names.full(one) or ident(one) for one in node.bases)
        return Class(node, bases, methods)

    def _is_module(self, one: Class, depth: int) -> bool:
        for base in one.bases:
            if base == "torch.nn.Module" or last(base) in _MODULES:
                return True
            if base.startswith("torch.nn.") and last(base)[:1].isupper():
                return True
            if base in self.classes and depth < DEEPEST and self._is_module(self.classes[base], depth + 1):
                return True
        return False

    def modules(self) -> list[Class]:
        """Return the classes of the script that are modules."""
        return [one for one in self.classes.values() if one.is_module]

    def forwards(self) -> list[tuple[Class, Function]]:
        """Return the classes of the script that are modules and have a `forward`, each with it."""
        return [(one, one.methods["forward"]) for one in self.modules() if "forward" in one.methods]

    def method(self, owner: Class | None, name: str, depth: int = 0) -> Function | None:
        """Return a method of a class or of its bases in the script."""
        if owner is None or depth > DEEPEST:
            return None
        if name in owner.methods:
            return owner.methods[name]
        found = (self.method(self.classes.get(base), name, depth + 1) for base in owner.bases)
        return next((one for one in found if one is not None), None)

    def attribute(self, owner: Class | None, name: str, depth: int = 0) -> list[Bound]:
        """Return what is assigned to an attribute of `self` in a class or in its bases in the script."""
        if owner is None or depth > DEEPEST:
            return []
        if name in owner.attributes:
            return owner.attributes[name]
        found = (self.attribute(self.classes.get(base), name, depth + 1) for base in owner.bases)
        return next((one for one in found if one), [])

    # --- names ---

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_target(target, node.value, node)
        elif isinstance(node, ast.AnnAssign):
            self._bind_target(node.target, node.value, node)
        elif isinstance(node, ast.AugAssign):
            self._bind_target(node.target, None, node)
        elif isinstance(node, ast.NamedExpr):
            self._bind_target(node.target, node.value, node)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._bind_target(node.target, None, node)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind_target(node.optional_vars, node.context_expr, node.optional_vars)
        elif isinstance(node, ast.Call) and method_of(node) == "register_buffer":
            self._bind_buffer(node)

    def _bind_buffer(self, call: ast.Call) -> None:
        """Bind `self.name` of `self.register_buffer("name", value)`."""
        owner, name = self.owner(call), constant(call.args[0] if call.args else None)
        if owner is not None and isinstance(name, str) and len(call.args) > 1:
            owner.attributes[name].append(Bound(call.args[1], call))

    def _bind_target(
        self, target: ast.expr, value: ast.expr | None, statement: ast.AST, path: tuple[int, ...] = ()
    ) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            paired = len(parts) == len(target.elts) and not any(isinstance(one, ast.Starred) for one in parts)
            for at, one in enumerate(target.elts):
                self._bind_target(one, parts[at] if paired else value, statement, path if paired else (*path, at))
        elif isinstance(target, ast.Name):
            self._bound[self.scope(target), target.id].append(_bound(value, statement, path))
        elif of_self(target):
            owner = self.owner(target)
            if owner is not None:
                owner.attributes[target.attr].append(_bound(value, statement, path))

    def bindings(self, scope: Scope, name: str) -> list[Bound]:
        """Return what is bound to a name in a scope, in the order of the source."""
        return self._bound.get((scope, name), [])

    def value_of(self, name: ast.AST | None) -> ast.expr | None:
        """Return the expression that a name stands for; None if that is unknown, or only a part of one."""
        bound = self.bound(name)
        return bound.value if bound is not None and bound.item is None else None

    def written(self, node: ast.expr | None) -> ast.expr | None:
        """Return what a name stands for, None if that is unknown; any other expression itself."""
        return self.value_of(node) if isinstance(node, ast.Name) else node

    def source_of(self, name: ast.AST | None) -> ast.expr | None:
        """Return the expression that a name gets its value from: all of it, or a part."""
        bound = self.bound(name)
        return None if bound is None else bound.value

    def bound(self, name: ast.AST | None) -> Bound | None:
        """Return the last binding of a name before its use, or the argument of a parameter; None for no name."""
        if not isinstance(name, ast.Name):
            return None
        scope: Scope = self.scope(name)
        line = self.statement(name).lineno
        while True:
            found = self.bindings(scope, name.id)
            if found:
                before = [one for one in found if one.line < line] if self.scope(name) is scope else []
                if before or not self.is_parameter(scope, name.id):
                    return (before or found)[-1]
            if self.is_parameter(scope, name.id):
                return self._argument(scope, name.id)
            if isinstance(scope, ast.Module):
                return None
            scope = self.scope(scope)

    @staticmethod
    def is_parameter(scope: Scope, name: str) -> bool:
        """Tell whether a name is a parameter of a function."""
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        given = scope.args
        return any(one.arg == name for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))

    def _argument(self, scope: Scope, name: str) -> Bound | None:
        """Return what the only call of a function gives to a parameter; a global variable of its name otherwise."""
        if isinstance(scope, FUNCTIONS):
            calls = self._calls_of.get(scope.name, [])
            if len(calls) == 1 and (value := argument(calls[0], name, place_of(scope, name))) is not None:
                return Bound(value, calls[0])
            same = self.bindings(self.tree, name)
            if not calls and same:
                return same[-1]
        return None

    def calls_of(self, name: str) -> list[ast.Call]:
        """Return the calls of a function by its name, or of a method by its name after a dot."""
        return self._calls_of.get(name, [])

    def called(self, call: ast.AST | None) -> str:
        """Return the last name of what is called: "mean" for `torch.mean(x)` and for `x.mean()`; empty for no call."""
        return (last(self.names.full(call.func)) or ident(call.func)) if isinstance(call, ast.Call) else ""

    def operand(self, call: ast.Call) -> ast.expr | None:
        """Return the object of a method, or the first argument of a function."""
        if isinstance(call.func, ast.Attribute) and not self.names.full(call.func):
            return call.func.value
        return call.args[0] if call.args else None

    def uses(self, function: Function) -> list[ast.Call]:
        """Return the calls of a function by its name, and of methods of its name."""
        return [*self.calls_of(function.name), *self.calls_of(f".{function.name}")]


def _bound(value: ast.expr | None, statement: ast.AST, path: tuple[int, ...]) -> Bound:
    return Bound(value, statement, path[-1] if path else None, path)


def place_of(function: Function | ast.Lambda, name: str) -> int:
    """Return the index of a parameter among the positional ones; -1 for others."""
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return given.index(name) if name in given else -1


def argument(call: ast.Call, name: str, place: int = -1) -> ast.expr | None:
    """Return the argument of a call by its name, or by its place from 0 on."""
    for one in call.keywords:
        if one.arg == name:
            return one.value
    given = call.args[: place + 1]
    if 0 <= place < len(call.args) and not any(isinstance(one, ast.Starred) for one in given):
        return call.args[place]
    return None


def constant(node: ast.expr | None) -> object:
    """Return the number, text or truth value that an expression is; None for any other expression."""
    if is_negative(node):
        value = constant(node.operand)
        return -value if isinstance(value, int | float) else None
    return node.value if isinstance(node, ast.Constant) else None


def number(node: ast.expr | None) -> float | None:
    """Return the number that an expression is; None for any other expression."""
    value = constant(node)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_given(call: ast.Call, name: str, place: int = -1) -> bool:
    """Tell whether a call gives an argument, or may give it by `*` or `**`."""
    loose = any(one.arg is None for one in call.keywords) or any(isinstance(one, ast.Starred) for one in call.args)
    return loose or argument(call, name, place) is not None
