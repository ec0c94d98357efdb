"""Where a script keeps an array itself that it changes later, and where it drops what a layer has made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.nodes import arguments, ident, method_of, of_self, only_target, within
from glassgrad.doctor.reading.origins.asked import Asked, Origin
from glassgrad.doctor.reading.program import FUNCTIONS, Class, Function, Program
from glassgrad.doctor.reading.rule import Node

_KEEPING = re.compile(r"^(append|appendleft|push|add|store|remember|put|insert|extend|save|record|memorize)")
_COPYING = re.compile(r"copy|clone|array\(|tensor\(|list\(|tuple\(|\[:\]|stack\(|concat")
_FRESH = frozenset({"reset_", "requires_grad_", "retain_grad_"})


def copies(asked: Asked) -> Iterator[Origin]:
    """Yield the line that gives or keeps an array or a list itself which the script changes later, and that change."""
    program = asked.program
    for held, change in _changes(program):
        kept = _kept(program, held, change)
        if kept is not None:
            yield Origin(f"{ast.unparse(held)} is kept itself", kept.lineno)
            yield Origin("it is changed", change.lineno)
            return
    for owner, name, change in _of_objects(program):
        given = _given(owner, name)
        if given is not None:
            yield Origin(f"self.{name} itself is given back", given.lineno)
            stored = _stored(program, owner)
            yield Origin("it is changed", change.lineno) if stored is None else Origin("it is kept", stored.lineno)
            return


def _changes(program: Program) -> Iterator[tuple[ast.expr, Node]]:
    """Yield the variables and attributes that a statement changes in place, with the statement."""
    for node in (one for one in program.nodes if isinstance(one, ast.expr | ast.stmt)):
        for target in _written(node):
            if isinstance(target, ast.Name) or of_self(target):
                yield target, node


def _written(node: Node) -> Iterator[ast.expr]:
    """Yield what a node writes into, or empties: `x[...] = y`, `x[...] += y`, `x.clear()`, `x.fill_(0)`, `del x[:]`."""
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        yield from (one.value for one in targets if isinstance(one, ast.Subscript))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name in {"clear", "fill"} or (name.endswith("_") and not name.startswith("_") and name not in _FRESH):
            yield node.func.value
        yield from (one.value for one in node.keywords if one.arg == "out")


def _kept(program: Program, name: ast.expr, change: Node) -> ast.Call | None:
    """Return the call that puts a changed variable itself into a list or a memory."""
    text, owner = ast.unparse(name), program.owner(change)
    for call in program.calls:
        function = method_of(call)
        mine = program.owner(call) is owner if of_self(name) else program.scope(call) is program.scope(change)
        keeps = mine and _KEEPING.match(function) and text != ast.unparse(call.func).rpartition(".")[0]
        itself = keeps and any(ast.unparse(one) == text for one in _parts(call))
        if itself and not _anew(program, name, call):
            return call
    return None


def _parts(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call, and the elements of displays among them."""
    for one in arguments(call):
        yield from one.elts if isinstance(one, ast.Tuple | ast.List) else [one]
        yield from one.values if isinstance(one, ast.Dict) else []


def _anew(program: Program, name: ast.expr, call: ast.Call) -> bool:
    """Tell whether a loop around a call, or a method beside `__init__`, makes the array anew."""
    if of_self(name):
        return _made_later(program, program.owner(call), name.attr)
    loops = program.loops(call)
    bound = program.bindings(program.scope(call), ast.unparse(name))
    return not loops or any(set(program.loops(one.statement)) & set(loops[:1]) for one in bound)


def _made_later(program: Program, owner: Class | None, name: str) -> bool:
    """Tell whether a method beside `__init__` makes an attribute of a class."""
    makers = [program.function(one.statement) for one in program.attribute(owner, name)]
    return any(one is not None and one.name != "__init__" for one in makers)


# --- objects that give their own arrays ---


def _of_objects(program: Program) -> Iterator[tuple[Class, str, Node]]:
    """Yield the attributes that the methods of a class change in place, and only `__init__` makes."""
    for owner in program.classes.values():
        for method in (one for one in owner.methods.values() if one.name != "__init__"):
            for node in (one for one in ast.walk(method) if isinstance(one, ast.expr | ast.stmt)):
                for target in _written(node):
                    if of_self(target) and not _made_later(program, owner, target.attr):
                        yield owner, target.attr, node


def _given(owner: Class, name: str) -> ast.expr | None:
    """Return the expression `self.name` that the last method of a class gives back as it is."""
    results = [one.value for one in within(owner.node, ast.Return) if one.value is not None]
    parts = [part for one in results for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
    found = [one for one in parts if ast.unparse(one) == f"self.{name}"]
    return max(found, key=lambda one: one.lineno) if found else None


def _stored(program: Program, owner: Class) -> ast.Call | None:
    """Return the call outside of a class that keeps, without a copy, what a method of it gives."""
    results = [node for node in program.every(ast.Assign) if method_of(node.value) in owner.methods]
    parts = [one for node in results for target in node.targets for one in within(target, ast.Name)]
    names = {one.id for one in parts if isinstance(one.ctx, ast.Store)}
    for call in program.calls:
        held = {one.id for one in _parts(call) if isinstance(one, ast.Name)}
        keeps = _KEEPING.match(method_of(call)) and names & held
        if keeps and program.owner(call) is not owner and not _COPYING.search(ast.unparse(call)):
            return call
    return None


# --- results that nothing takes ---


def dropped(asked: Asked) -> Iterator[Origin]:
    """Yield the lines of a `forward` whose result of a layer nothing reads, or only what stands under a condition."""
    parts = {part for name in re.findall(r"[\w.]+\.\w+", asked.finding.what) for part in name.split(".")[:-1]}
    for _, forward in asked.program.forwards():
        for node in within(forward, ast.Assign):
            name = only_target(node)
            if not isinstance(name, ast.Name):
                continue
            made = [one.func for one in within(node.value, ast.Call) if of_self(_layer(one.func))]
            layers = [ast.unparse(one) for one in made if ident(_layer(one)) in parts]
            if layers and not _is_read(asked.program, forward, node, name.id):
                yield Origin(f"what {layers[0]} gives is not used", node.lineno)


def _layer(function: ast.expr) -> ast.expr:
    return function.value if isinstance(function, ast.Subscript) else function


def _is_read(program: Program, forward: Function, made: ast.Assign, name: str) -> bool:
    """Tell whether a method always reads a variable that a statement sets."""
    reads = [one for one in within(forward, ast.Name) if one.id == name and isinstance(one.ctx, ast.Load)]
    return any(not _is_conditional(program, one, made) for one in reads)


def _is_conditional(program: Program, node: ast.AST, made: ast.AST) -> bool:
    """Tell whether a place stands in a branch that does not hold a statement."""
    around, inner = set(program.outward(made)), node
    for outer in program.outward(node):
        if isinstance(outer, FUNCTIONS):
            return False
        if isinstance(outer, ast.If | ast.IfExp) and outer not in around and inner is not outer.test:
            return True
        inner = outer
    return False
