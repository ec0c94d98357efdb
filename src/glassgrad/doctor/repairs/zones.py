"""The parts of a script that belong to its training: model, setup and loop, without data and evaluation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import callee_of, ident, method_of, object_of, within
from glassgrad.doctor.reading.program import FUNCTIONS, Function, Loop, Program
from glassgrad.doctor.repairs.edits import Edit, Text

_QUIET = frozenset({"no_grad", "inference_mode"})
_TOLD = frozenset({"print", "info", "debug", "write", "log", "set_postfix", "item", "add_scalar"})
_WORK = frozenset({"backward", "step", "zero_grad", "grad"})
_SETUP = ("torch.optim", "torch.nn", "torch.utils.data")
_DRAWS = frozenset({"randn", "rand", "normal", "standard_normal", "uniform", "randint", "integers", "random"})
_MOST = 400


class Zones:
    """The parts of a script, and the names in it.

    Attributes:
        program: the script as its rules see it; `text`: its source.
    """

    def __init__(self, source: str) -> None:
        self.text = Text(source)
        self.program = Program(ast.parse(source))

    # --- the training ---

    @cached_property
    def backwards(self) -> list[ast.Call]:
        """The calls of `backward` that begin a backward pass, and those of `grad` in loops without one."""
        found = [one for one in self.program.calls_of(".backward") if not _is_super(one)]
        return found or self.program.calls_of(".grad")

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops around the backward passes, in whatever function they stand, the inner ones first."""
        found: list[Loop] = []
        for call in self.backwards:
            waiting: list[ast.AST] = [call]
            seen: set[ast.AST] = set()
            while waiting:
                node = waiting.pop()
                found += [one for one in self.program.loops(node) if one not in found]
                function = self.program.function(node)
                if function is not None and function not in seen:
                    seen.add(function)
                    waiting += self.program.uses(function)
        return found

    @cached_property
    def _reached(self) -> set[ast.AST]:
        """The functions of the script that the training loops call, and those that hold a backward pass."""
        found: set[ast.AST] = set()
        waiting: list[ast.AST] = [*self.loops, *filter(None, map(self.program.function, self.backwards))]
        while waiting:
            node = waiting.pop()
            for call in within(node, ast.Call):
                new = [one for one in self._called(call) if one not in found]
                found.update(new)
                waiting += new
        return found

    def _called(self, call: ast.Call) -> Iterator[Function]:
        """Yield the functions of the script that a call may run, by its name, without those of modules."""
        name = _name(call)
        methods = [one.methods.get(name) for one in self.program.classes.values() if not one.is_module]
        for function in (self.program.functions.get(name), *methods):
            owner = self.program.owner(function) if function is not None else None
            if function is not None and not (owner is not None and owner.is_module):
                yield function

    def _trains(self, function: ast.AST | None) -> bool:
        """Tell whether a function holds a backward pass."""
        return function is not None and any(function in self.program.outward(one) for one in self.backwards)

    @cached_property
    def _evaluations(self) -> set[ast.AST]:
        """The blocks and functions that only evaluate."""
        found: set[ast.AST] = set()
        last_backward = max((one.lineno for one in self.backwards), default=0)
        for node in self.program.nodes:
            if isinstance(node, FUNCTIONS):
                calls = {method_of(one) for one in ast.walk(node)}
                quiet = "eval" in calls or any(_name(one) in _QUIET for one in node.decorator_list)
                resting = quiet or node.name.startswith(("eval", "valid", "test"))
                if resting and "backward" not in calls and not _updates(node):
                    found.add(node)
            elif isinstance(node, ast.With) and _name(node.items[0].context_expr) in _QUIET:
                found.update([node] if node.lineno > last_backward and not _updates(node) else [])
        return found

    def is_evaluation(self, node: ast.AST) -> bool:
        """Tell whether a node only evaluates, or shows figures."""
        if any(one in self._evaluations for one in self.program.outward(node)):
            return True
        statement = self.program.statement(node)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            calls = [_name(one) for one in within(statement, ast.Call)]
            return calls[0] in _TOLD or "item" in calls
        return False

    @cached_property
    def _shown(self) -> set[ast.AST]:
        """The functions of the script that evaluations and prints call, without models and training."""
        found: set[ast.AST] = set()
        waiting = [one for one in self.program.nodes if isinstance(one, ast.stmt) and self._shows(one)]
        while waiting:
            for call in within(waiting.pop(), ast.Call):
                new = [one for one in self._called(call) if one not in found and not self._trains(one)]
                found.update(new)
                waiting += new
        return found

    def _shows(self, statement: ast.stmt) -> bool:
        """Tell whether a statement evaluates, makes figures, or stands behind the training loops of its block."""
        if statement in self._evaluations or self.is_evaluation(statement):
            return True
        around = self.program.function(statement)
        mine = [one for one in self.loops if self.program.function(one) is around]
        ends = max((one.end_lineno or 0 for one in mine), default=0)
        inside = any(one in self.program.outward(statement) for one in mine)
        return 0 < ends < statement.lineno or (inside and self._is_aside(statement))

    def is_shown(self, node: ast.AST) -> bool:
        """Tell whether a node stands in a function that figures are computed with."""
        return any(one in self._shown for one in self.program.outward(node))

    @cached_property
    def _data(self) -> set[ast.AST | None]:
        """The functions that draw examples."""
        return {
            function
            for function in self.program.functions.values()
            if self.program.owner(function) is None
            and not self._trains(function)
            and any(callee_of(one) in _DRAWS for one in ast.walk(function))
        }

    def is_drawn(self, node: ast.AST) -> bool:
        """Tell whether a node stands in a call that draws random numbers."""
        around = (one for one in (node, *self.program.outward(node)) if isinstance(one, ast.expr))
        return any(callee_of(one) in _DRAWS for one in around)

    def zone(self, node: ast.AST) -> str:
        """Return "model", "loop" or "setup" for a part that may be changed; empty for any other."""
        if self._is_left_alone(node):
            return ""
        owner, around = self.program.owner(node), [node, *self.program.outward(node)]
        if owner is not None and (owner.is_module or "Function" in map(last, owner.bases)):
            return "model"
        if self._is_aside(node):
            return ""
        if any(one in self._reached or one in self.loops for one in around):
            return "loop"
        return "setup" if self._is_setup(self.program.statement(node)) else ""

    def _is_left_alone(self, node: ast.AST) -> bool:
        """Tell whether a node belongs to data, evaluation, figures, or an environment."""
        if self.is_evaluation(node) or self.is_drawn(node) or self.program.function(node) in self._data:
            return True
        if self._is_of_environment(node):
            return True
        return self.is_shown(node) and not any(one in self._of_loss for one in self.program.outward(node))

    def _is_of_environment(self, node: ast.AST) -> bool:
        """Tell whether a node stands in a class that plays: its rewards are figures, so a change would only flatter."""
        owner = self.program.owner(node)
        plays = owner is not None and not owner.is_module and {"reset", "step"} <= owner.methods.keys()
        return plays and not self._trains(self.program.function(node))

    def _is_aside(self, node: ast.AST) -> bool:
        """Tell whether a statement binds names that the loss does not come from, as figures to be shown."""
        statement, inside = self.program.statement(node), self.program.function(node)
        if inside in self._reached and not self._trains(inside):
            return False  # a function that the loop calls for what it changes
        if isinstance(statement, ast.Assign) and statement not in self._of_loss:
            names = all(isinstance(one, ast.Name) for one in statement.targets)
            made = any(callee_of(one) in _WORK for one in ast.walk(statement))
            return names and not made and not self._is_setup(statement)
        plain = isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
        return plain and statement not in self._of_loss

    def _is_setup(self, statement: ast.stmt) -> bool:
        """Tell whether a statement outside of loops makes or changes a model, an optimizer or the like."""
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return False
        for one in ast.walk(statement):
            if isinstance(one, ast.Call):
                full = self.program.names.full(one.func)
                known = self.program.classes.get(getattr(one.func, "id", ""))
                if full.startswith(_SETUP) or (known is not None and known.is_module):
                    return True
                if _name(one) in {"parameters", "load_state_dict", "eval", "train", "requires_grad_", "apply"}:
                    return True
            if isinstance(one, ast.Attribute) and one.attr in {"requires_grad", "data", "weight", "bias"}:
                return True
        return False

    # --- the loss ---

    @cached_property
    def _of_loss(self) -> set[ast.AST]:
        """The statements, and functions of the script, that the loss comes from, without the model."""
        found: set[ast.AST] = set()
        waiting: list[ast.AST] = [held for one in self.backwards if (held := object_of(one)) is not None]
        while waiting and len(found) < _MOST:
            for node in ast.walk(waiting.pop()):
                new = [one for one in self._makers(node) if one not in found]
                found.update(new)
                waiting += new
        return found

    def _makers(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the statements that bind a name, and the functions of the script that a call may run."""
        if isinstance(node, ast.Name):
            for bound in self.program.bindings(self.program.scope(node), node.id):
                statement = bound.statement
                known = bound.value is not None or isinstance(statement, ast.AugAssign)
                if known and isinstance(statement, ast.stmt):
                    yield statement
        elif isinstance(node, ast.Call):
            yield from self._called(node)

    def of_loss(self, node: ast.AST) -> bool:
        """Tell whether a node is part of what the loss is computed with, outside of models."""
        around = [node, *self.program.outward(node)]
        if any(one in self._of_loss for one in around):
            owner = self.program.owner(node)
            return owner is None or not owner.is_module or "loss" in owner.node.name.lower()
        statement = self.program.statement(node)
        return any(self.program.statement(one) is statement for one in self.backwards)

    # --- nodes ---

    @cached_property
    def nodes(self) -> list[tuple[ast.AST, str]]:
        """The expressions and statements that may be changed, each with its zone."""
        pairs = ((one, self.zone(one)) for one in self.program.nodes if isinstance(one, ast.expr | ast.stmt))
        return [(one, zone) for one, zone in pairs if zone]

    def edit(self, means: str, *pairs: tuple[ast.AST, str], prior: float = 1.0, tunes: bool = False) -> Edit | None:
        """Return the change that replaces nodes; None if the text would not be Python."""
        node = pairs[0][0]
        made = self.made(means, int(getattr(node, "lineno", 1)), self.text.replaced(*pairs), prior)
        loss, shown = self.of_loss(node), self.is_shown(node)
        return None if made is None else replace(made, rescales=loss, shown=shown, tunes=tunes)

    @staticmethod
    def made(means: str, line: int, text: str, prior: float, at: int = 0) -> Edit | None:
        """Return a change of a line; `at` is the line of the new text that shows it, 0 for the same, -1 for none."""
        try:
            ast.parse(text)
        except SyntaxError:
            return None
        lines = text.splitlines()
        new = lines[(at or line) - 1].strip() if at >= 0 else ""
        return Edit(line, new, text, means, prior=prior)

    def calls(self, *zones: str) -> Iterator[tuple[ast.Call, str]]:
        """Yield the calls in zones with the names of their functions."""
        for node, zone in self.nodes:
            if isinstance(node, ast.Call) and (not zones or zone in zones):
                yield node, _name(node)


def _name(node: ast.AST) -> str:
    """Return the last name of a call's function, or of a name."""
    return callee_of(node) or ident(node)


def _updates(node: ast.AST) -> bool:
    """Tell whether a block changes tensors in place, as a step of an optimizer or of an average does."""
    names = {one.attr for one in within(node, ast.Attribute)}
    return any(name in {"grad", "data"} or name.rstrip("_") + "_" == name for name in names)


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and _name(call.func.value) == "super"
