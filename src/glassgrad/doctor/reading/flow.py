"""Follow values back to their origin, through names, attributes, parameters, containers and the script's own calls.

`Flow.ends` returns the expressions that a value can come from. A value consists of an expression, the calls that enter
its function, and the selected part of it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.bindings import default_of, is_before, is_container, reaching, stored
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import is_name, method_of
from glassgrad.doctor.reading.program import (
    FUNCTIONS,
    Bound,
    Class,
    Function,
    Program,
    Scope,
    argument,
    constant,
    place_of,
)

EACH = -99
"""Stands for each element of a value, as a loop gives it."""
Part = int | str
_DEPTH = 40
_STEPS = 600
"""The number of values after which a search ends, because functions that call each other have many paths."""
_MOST = 24
"""The number of ends after which a search stops."""
_MODULES = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList"})
_PASSING = named("list tuple sorted reversed iter tqdm trange cycle islice set shuffle prefetch Subset ConcatDataset")
_STACKING = frozenset({"stack", "cat", "concat"})


@dataclass(frozen=True)
class Frame:
    """A call that enters a function.

    Attributes:
        function: the function.
        call: the call.
        outer: the frame of the caller.
        instance: for a method, the value of its object.
    """

    function: Function | ast.Lambda
    call: ast.Call
    outer: Frame | None = None
    instance: Value | None = None


@dataclass(frozen=True)
class Value:
    """An expression, the calls that lead to it, and the selected part of it."""

    node: ast.expr
    frame: Frame | None = None
    path: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Callee:
    """A function of the script that a call enters, and its object if it is a method."""

    function: Function | ast.Lambda
    instance: Value | None = None


def flow(program: Program) -> Flow:
    """Return the flow of values of a program."""
    found = program.memo.get("flow")
    if not isinstance(found, Flow):
        found = program.memo["flow"] = Flow(program)
    return found


class Flow:
    """Follows values of a program back to the expressions that make them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._ends: dict[Value, tuple[Value, ...]] = {}
        self._busy: set[Value] = set()
        self._cuts = self._steps = 0
        self._gives: dict[ast.AST, list[ast.Return | ast.Yield]] = {}
        self._callers: dict[ast.AST, list[tuple[ast.Call, Value | None]]] = {}

    # --- values ---

    def ends(self, value: Value | ast.expr) -> tuple[Value, ...]:
        """Return the expressions that a value can come from. None of them is a name or a call of the script."""
        value = value if isinstance(value, Value) else Value(value)
        if value in self._ends:
            return self._ends[value]
        if value in self._busy:
            self._cuts += 1
            return ()  # a variable that gets its value from itself in a loop
        self._steps = self._steps + 1 if self._busy else 0
        if len(self._busy) > _DEPTH or self._steps > _STEPS:
            return (value,)
        self._busy.add(value)
        cuts = self._cuts
        try:
            before = self.before(value)
            found = (value,) if before is None else self._union(before)
        finally:
            self._busy.discard(value)
        if cuts == self._cuts or not self._busy:
            self._ends[value] = found
        return found

    def _union(self, values: Iterable[Value]) -> tuple[Value, ...]:
        found: dict[Value, None] = {}
        for one in values:
            found.update(dict.fromkeys(self.ends(one)))
            if len(found) > _MOST:
                break
        return tuple(found)

    def end(self, value: Value | ast.expr) -> Value | None:
        """Return the only expression that a value can come from; None if there are several."""
        found = self.ends(value)
        return found[0] if len(found) == 1 else None

    def origin(self, value: Value | ast.expr) -> ast.expr | None:
        """Return the only expression that a value can come from, without its frame; None if there are several."""
        one = self.end(value)
        return None if one is None else one.node

    def origins(self, value: Value | ast.expr) -> list[ast.expr]:
        """Return the expressions that a value can come from, without their frames."""
        return [one.node for one in self.ends(value)]

    def before(self, value: Value) -> list[Value] | None:
        """Return the values that an expression gets its value from; None if it makes the value itself."""
        node = value.node
        if isinstance(node, ast.Name):
            return self._of_name(node, value)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node, value)
        if isinstance(node, ast.Call):
            return self._of_call(node, value)
        if isinstance(node, ast.Subscript):
            return self._of_part(node, value)
        if isinstance(node, ast.IfExp):
            return [Value(one, value.frame, value.path) for one in (node.body, node.orelse)]
        if isinstance(node, ast.NamedExpr):
            return [Value(node.value, value.frame, value.path)]
        return self._of_container(node, value) if value.path else None

    # --- names ---

    def _of_name(self, node: ast.Name, value: Value) -> list[Value] | None:
        program = self.program
        scope: Scope = program.scope(node)
        while True:
            if isinstance(scope, ast.ClassDef) and scope is not program.scope(node):
                scope = program.scope(scope)
                continue
            found = reaching(program, scope, node)
            given = program.is_parameter(scope, node.id)
            if found and (not given or any(is_before(program, one, node) for one in found)):
                return self._of_bounds(found, value, _frame_of(value.frame, scope))
            if given and not isinstance(scope, ast.Module | ast.ClassDef):
                return self._of_parameter(scope, node.id, value)
            if isinstance(scope, ast.Module):
                return None
            scope = program.scope(scope)

    def _of_bounds(self, found: list[Bound], value: Value, frame: Frame | None) -> list[Value] | None:
        values: list[Value] = []
        for one in found:
            if isinstance(one.statement, ast.For | ast.AsyncFor | ast.comprehension):
                values.append(Value(one.statement.iter, frame, (EACH, *one.path, *value.path)))
            elif isinstance(one.statement, ast.AugAssign):
                values.append(Value(one.statement.value, frame, value.path))
            elif one.value is not None:
                values.append(Value(one.value, frame, (*one.path, *value.path)))
                if value.path and is_container(one.value):
                    values += self._stored(one, value, frame)
        return values or None

    def _stored(self, bound: Bound, value: Value, frame: Frame | None) -> list[Value]:
        """Return the values that the script stores in a container later."""
        held: ast.expr | None = value.node if isinstance(value.node, ast.Name) else None
        if isinstance(value.node, ast.Attribute):
            held = ast.Attribute(ast.Name("self", ast.Load()), value.node.attr, ast.Load())
        put = stored(self.program, bound, held) if held is not None else []
        return [Value(one, frame, value.path[1:]) for one in put]

    def _of_parameter(self, scope: Function | ast.Lambda, name: str, value: Value) -> list[Value] | None:
        frame = _frame_of(value.frame, scope)
        if frame is not None:
            calls = [(frame.call, frame.outer, frame.instance is not None)]
        else:
            calls = [(call, None, instance is not None) for call, instance in self.callers(scope)]
        values = [
            Value(given, outer, value.path)
            for call, outer, bound in calls
            if (given := self._given(scope, call, name, bound)) is not None
        ]
        missing = len(values) < len(calls) or not calls
        default = default_of(scope, name)
        if default is not None and missing:
            values.append(Value(default, None, value.path))
        return values or None

    def _given(self, scope: Function | ast.Lambda, call: ast.Call, name: str, bound: bool) -> ast.expr | None:
        place = place_of(scope, name) - (1 if bound and not _is_static(scope) else 0)
        return argument(call, name, place)

    # --- attributes ---

    def _of_attribute(self, node: ast.Attribute, value: Value) -> list[Value] | None:
        if is_name(node.value, "self"):
            instance = _instance_of(value.frame)
            owner = self.class_of(instance) or self.program.owner(node)
            return self._of_member(owner, node, value, instance)
        if self.program.names.full(node):
            return None
        found: list[Value] = []
        for one in self.ends(Value(node.value, value.frame)):
            owner = self.class_of(one)
            inner = self._of_member(owner, node, value, one) if owner is not None and not one.path else None
            found += inner or []
        return found or None

    def _of_member(
        self, owner: Class | None, node: ast.Attribute, value: Value, instance: Value | None
    ) -> list[Value] | None:
        program = self.program
        if program.method(owner, node.attr) is not None:
            return None
        bounds = [one for one in program.attribute(owner, node.attr) if not isinstance(one.value, ast.Constant | None)]
        bounds = bounds or program.attribute(owner, node.attr)
        values: list[Value] = []
        for one in bounds:
            function = program.function(one.statement)
            frame = _frame_of(value.frame, function) if function is not None else None
            made = instance.node if instance is not None else None
            if frame is None and function is not None and function.name == "__init__" and isinstance(made, ast.Call):
                frame = Frame(function, made, instance.frame if instance is not None else None, instance)
            values += self._of_bounds([one], value, frame) or []
        return values or None

    def member(self, instance: Value, name: str) -> tuple[Value, ...]:
        """Return the values that an attribute of an object can hold."""
        owner = self.class_of(instance)
        node = ast.Attribute(ast.Name("self", ast.Load()), name, ast.Load())
        return self._union(self._of_member(owner, node, Value(node), instance) or []) if owner is not None else ()

    def class_of(self, value: Value | None) -> Class | None:
        """Return the class of the script whose call makes a value."""
        if value is None or not isinstance(value.node, ast.Call) or not isinstance(value.node.func, ast.Name):
            return None
        return self.program.classes.get(value.node.func.id)

    # --- calls ---

    def callee(self, call: ast.Call, frame: Frame | None = None) -> Callee | None:
        """Return the function of the script that a call enters."""
        program, function = self.program, call.func
        if isinstance(function, ast.Attribute):
            return self._method(function, frame)
        if not isinstance(function, ast.Name | ast.Call | ast.Subscript):
            return None
        if isinstance(function, ast.Name):
            name = function.id
            known = program.functions.get(name)
            later = [
                one for one in program.bindings(program.tree, name) if known and known.lineno < one.line < call.lineno
            ]
            plain = known is not None and not program.names.full(function) and program.owner(known) is None
            if known is not None and plain and not later:
                return Callee(known)
            if name in program.classes or program.names.full(function):
                return None
        return self._object(function, frame)

    def _object(self, function: ast.expr, frame: Frame | None) -> Callee | None:
        """Return what a call enters whose function is an object of a class of the script, or a lambda."""
        for one in self.ends(Value(function, frame)):
            if isinstance(one.node, ast.Lambda):
                return Callee(one.node)
            owner = self.class_of(one)
            for name in ("forward", "__call__") if not one.path else ():
                if (method := self.program.method(owner, name)) is not None:
                    return Callee(method, one)
        return None

    def _method(self, function: ast.Attribute, frame: Frame | None) -> Callee | None:
        program = self.program
        if is_name(function.value, "self"):
            instance = _instance_of(frame)
            owner = self.class_of(instance) or program.owner(function)
            method = program.method(owner, function.attr)
            if method is not None:
                return Callee(method, instance)
        elif program.names.full(function):
            return None
        else:
            for one in self.ends(Value(function.value, frame)):
                method = program.method(self.class_of(one), function.attr)
                if method is not None and not one.path:
                    return Callee(method, one)
        return self._object(function, frame)

    def entered(self, call: ast.Call, frame: Frame | None = None) -> tuple[Callee, Frame] | None:
        """Return the function that a call enters, and its frame."""
        callee = self.callee(call, frame)
        if callee is None:
            return None
        is_method = isinstance(callee.function, FUNCTIONS) and self.program.owner(callee.function) is not None
        instance = callee.instance
        if is_method and instance is None:
            instance = _instance_of(frame) or Value(call.func)
        return callee, Frame(callee.function, call, frame, instance)

    def callers(self, function: Function | ast.Lambda) -> list[tuple[ast.Call, Value | None]]:
        """Return the calls of a function, each with its object if the function is a method."""
        if function in self._callers:
            return self._callers[function]
        self._callers[function] = []
        if isinstance(function, ast.Lambda):
            return []
        program, owner = self.program, self.program.owner(function)
        found: list[tuple[ast.Call, Value | None]]
        if owner is None or program.scope(function) is not owner.node:
            found = [(call, None) for call in program.calls_of(function.name)]
        elif function.name == "__init__":
            found = [(call, Value(call)) for call in program.calls_of(owner.node.name)]
        else:
            found = list(self._calls_of_method(function))
        self._callers[function] = found
        return found

    def _calls_of_method(self, function: Function) -> Iterator[tuple[ast.Call, Value | None]]:
        program = self.program
        calls = program.calls_of(f".{function.name}")
        if function.name in {"forward", "__call__"}:
            calls = [one for one in program.calls if isinstance(one.func, ast.Name | ast.Attribute)]
        for call in calls:
            inner = self.callee(call)
            if inner is not None and inner.function is function:
                yield call, inner.instance or Value(call.func)

    def _of_call(self, call: ast.Call, value: Value) -> list[Value] | None:
        inner = self.entered(call, value.frame)
        if inner is not None and sum(1 for _ in frames_of(value.frame)) < 8:
            callee, frame = inner
            return self._returned(callee.function, frame, value.path)
        return self._through(call, value) if value.path else None

    def _returned(self, function: Function | ast.Lambda, frame: Frame, path: tuple[Part, ...]) -> list[Value] | None:
        if isinstance(function, ast.Lambda):
            return [Value(function.body, frame, path)]
        own = self._results(function)
        gives = [one for one in own if isinstance(one, ast.Yield)]
        if gives:
            return [Value(one.value, frame, path[1:]) for one in gives if one.value is not None] if path else None
        return [Value(one.value, frame, path) for one in own if one.value is not None] or None

    def _results(self, function: Function) -> list[ast.Return | ast.Yield]:
        """Return the statements of a function that return or yield a value."""
        if function not in self._gives:
            nodes = [node for node in ast.walk(function) if isinstance(node, ast.Return | ast.Yield)]
            own = [one for one in nodes if one.value is not None and self.program.function(one) is function]
            self._gives[function] = own
        return self._gives[function]

    def _through(self, call: ast.Call, value: Value) -> list[Value] | None:
        """Return the values that contain the selected part of a known function's result."""
        name = last(self.program.names.full(call.func)) or getattr(call.func, "id", method_of(call))
        item = self.program.method(self.class_of(Value(call)), "__getitem__")
        if item is not None and isinstance(value.path[0], int):
            frame = Frame(item, call, value.frame, Value(call, value.frame))
            return self._returned(item, frame, value.path[1:])
        if name in _MODULES:
            return _module_part(name, call, value)
        return _of_library(name, call, value) if call.args or call.keywords else None

    # --- containers ---

    def _of_part(self, node: ast.Subscript, value: Value) -> list[Value] | None:
        key = constant(node.slice)
        if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)):
            return [Value(node.value, value.frame, (key, *value.path))]
        made = self.ends(Value(node.value, value.frame)) if isinstance(node.slice, ast.Name | ast.Constant) else ()
        keys = [constant(one.node) for one in self.ends(Value(node.slice, value.frame)) if made and not one.path]
        if keys and all(isinstance(one, str) for one in keys):
            return [Value(node.value, value.frame, (str(one), *value.path)) for one in keys]
        if made and all(is_container(one.node) for one in made):
            return [Value(node.value, value.frame, (EACH, *value.path))]
        return None

    def _of_container(self, node: ast.expr, value: Value) -> list[Value] | None:
        first, rest = value.path[0], value.path[1:]
        if isinstance(node, ast.Tuple | ast.List):
            starred = any(isinstance(one, ast.Starred) for one in node.elts)
            if isinstance(first, int) and first != EACH and not starred:
                inside = -len(node.elts) <= first < len(node.elts)
                return [Value(node.elts[first], value.frame, rest)] if inside else None
            return [
                Value(one.value, value.frame, value.path)
                if isinstance(one, ast.Starred)
                else Value(one, value.frame, rest)
                for one in node.elts
            ]
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return [Value(node.elt, value.frame, rest)]
        if isinstance(node, ast.Dict):
            named_so = [at for at, key in enumerate(node.keys) if key is not None and constant(key) == first]
            chosen = [node.values[at] for at in named_so] if named_so else [] if isinstance(first, str) else node.values
            return [Value(one, value.frame, rest) for one in chosen]
        return [Value(node.value, value.frame, rest)] if isinstance(node, ast.DictComp) else None


def _of_library(name: str, call: ast.Call, value: Value) -> list[Value] | None:
    """Return the values that contain the selected part of the result of a function of Python or a library."""
    path, frame, args = value.path, value.frame, call.args
    first, second = path[0], path[1] if len(path) > 1 else None
    found: tuple[ast.expr | None, tuple[Part, ...]] = (None, ())
    if name in _PASSING and args:
        found = args[0], path
    elif name == "next" and args:
        found = args[0], (EACH, *path)
    elif name == "enumerate" and args and second == 1:
        found = args[0], (EACH, *path[2:])
    elif name == "DataLoader" and first == EACH:
        found = argument(call, "dataset", 0), path
    elif name == "TensorDataset" and isinstance(second, int) and 0 <= second < len(args):
        found = args[second], (EACH, *path[2:])
    elif name in {"random_split", "split"} and args and len(path) > 1 and isinstance(first, int):
        found = args[0], path[1:]
    elif name == "zip" and args:
        return _zipped(args, frame, path)
    elif name == "map" and len(args) == 2 and len(path) == 1 and getattr(args[0], "attr", "") in _STACKING:
        found = args[1], (first, EACH)  # each list of a tuple of lists becomes one tensor
    elif name == "loads" and args and isinstance(constant(args[0]), str):
        found, frame = (_literal(str(constant(args[0]))), path), None
    return [Value(found[0], frame, found[1])] if found[0] is not None else None


def _module_part(name: str, call: ast.Call, value: Value) -> list[Value] | None:
    first, rest = value.path[0], value.path[1:]
    if name != "Sequential":
        return [Value(call.args[0], value.frame, value.path)] if call.args else None
    if any(isinstance(one, ast.Starred) for one in call.args):
        starred = [one.value for one in call.args if isinstance(one, ast.Starred)]
        return [Value(one, value.frame, value.path) for one in starred]
    if isinstance(first, int) and first != EACH and -len(call.args) <= first < len(call.args):
        return [Value(call.args[first], value.frame, rest)]
    return [Value(one, value.frame, rest) for one in call.args] if first == EACH else None


def _zipped(args: list[ast.expr], frame: Frame | None, path: tuple[Part, ...]) -> list[Value] | None:
    if len(args) == 1 and isinstance(args[0], ast.Starred):
        turned = (EACH, path[0], *path[2:]) if path[0] != EACH else path
        return [Value(args[0].value, frame, turned)]
    if len(path) > 1 and isinstance(path[1], int) and 0 <= path[1] < len(args):
        return [Value(args[path[1]], frame, (EACH, *path[2:]))]
    return None


def _literal(text: str) -> ast.expr | None:
    """Parse a JSON text to an expression of constants."""
    try:
        return ast.parse(repr(json.loads(text)), mode="eval").body
    except ValueError:
        return None


def _is_static(scope: Function | ast.Lambda) -> bool:
    decorated = [] if isinstance(scope, ast.Lambda) else scope.decorator_list
    return any(ast.unparse(one) == "staticmethod" for one in decorated)


def frames_of(frame: Frame | None) -> Iterator[Frame]:
    """Yield the frames that lead to a place, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.outer


def _frame_of(frame: Frame | None, scope: ast.AST) -> Frame | None:
    return next((one for one in frames_of(frame) if one.function is scope), None)


def _instance_of(frame: Frame | None) -> Value | None:
    return frame.instance if frame is not None else None
