"""The training loops of a script as sequences of events: zero_grad, backward, clipping, steps, schedules, modes.

A call of a function or method of the script counts as the calls in it, so that an iteration is the same whether it is
written in the loop or in a function that the loop calls.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from glassgrad.doctor.reading.actors import makes_optimizer
from glassgrad.doctor.reading.flow import Frame, Value, flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import arguments, has_attribute, ident, of_self
from glassgrad.doctor.reading.program import FUNCTIONS, LOOPS, Function, Loop, Program, constant

_OPTIMIZER = re.compile(r"opt|adam|sgd", re.IGNORECASE)
_SCHEDULE = re.compile(r"sched|warmup|lr_|plateau", re.IGNORECASE)
_CLIPS = frozenset({"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_gradients"})
_BUILDS = named("print len range enumerate zip list tuple dict set str int float min max sum sorted iter next")
_EVENTFUL = re.compile(
    r"^(backward|step|eval|train|grad|unscale_|value_and_grad)$|zero_grad|clip_grad|opt|adam|sgd", re.IGNORECASE
)
"""Names in functions that may hold an event."""
_DEEPEST = 4
Arm = tuple[ast.If, tuple[ast.expr, ...], bool]


@dataclass(frozen=True)
class Event:
    """One event of an iteration.

    Attributes:
        kind: "zero", "backward", "step", "clip", "schedule", "eval", "train", "unscale", "forward", "grad" for
            gradients computed without backward, or "opaque" for a call of unknown code that gets the optimizer.
        node: the call; `receiver` is the text of the object whose method it is.
        loops: the loops between the iteration and the event, the outermost first.
        sure: whether each iteration reaches it, because it is under no condition.
        chain: the calls that lead to it, the outermost first; `frame` is the frame of the innermost call.
        arms: the conditions around it, each with the calls that lead to it, and whether it holds.
    """

    kind: str
    node: ast.expr
    receiver: str = ""
    loops: tuple[Loop, ...] = ()
    sure: bool = True
    chain: tuple[ast.expr, ...] = ()
    frame: Frame | None = None
    arms: tuple[Arm, ...] = ()

    @property
    def value(self) -> Value:
        """The object whose method the event calls."""
        function = self.node.func if isinstance(self.node, ast.Call) else self.node
        return Value(function.value if isinstance(function, ast.Attribute) else function, self.frame)

    def beside(self, other: Event) -> bool:
        """Tell whether one iteration can reach both events."""
        mine = {(node, chain): holds for node, chain, holds in self.arms}
        return all(mine.get((node, chain), holds) is holds for node, chain, holds in other.arms)


@dataclass(frozen=True)
class Way:
    """The path on which the reading of an iteration reached a statement."""

    loops: tuple[Loop, ...] = ()
    sure: bool = True
    chain: tuple[ast.expr, ...] = ()
    frame: Frame | None = None
    arms: tuple[Arm, ...] = ()

    def into(self, node: ast.If, arm: bool) -> Way:
        """Return the path into a branch of a condition."""
        return replace(self, arms=(*self.arms, (node, self.chain, arm)))


@dataclass(frozen=True)
class Iteration:
    """The body of a loop, or of a function that nothing in the script calls: its events in order.

    Attributes:
        node: the loop or the function.
        events: those in it, with those in inner loops.
        whole: whether it is a loop, so that what is not in it does not happen.
    """

    node: Loop | Function
    events: tuple[Event, ...] = field(default_factory=tuple)
    whole: bool = True

    def of(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds."""
        return [one for one in self.events if one.kind in kinds]

    def own(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds that happen once an iteration: outside of inner loops."""
        return [one for one in self.of(*kinds) if not one.loops]

    @property
    def is_innermost(self) -> bool:
        """Whether its backward passes are outside of inner loops."""
        return bool(self.own("backward"))

    @property
    def is_known(self) -> bool:
        """Whether all code in it that may touch gradients is known."""
        return not self.of("opaque", "grad")


class Reader:
    """Finds the iterations of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._called = {one.func.id for one in program.calls if isinstance(one.func, ast.Name)}
        self._called |= {one.func.attr for one in program.calls if isinstance(one.func, ast.Attribute)}
        self._busy = _busy(program)

    def iterations(self) -> Iterator[Iteration]:
        """Yield the loops of a script, and the functions with a step that it does not call."""
        for node in self._program.nodes:
            if isinstance(node, LOOPS):
                yield Iteration(node, tuple(self._body(node.body, Way())))
            elif isinstance(node, FUNCTIONS) and node.name not in self._called:
                yield Iteration(node, tuple(self._body(node.body, Way())), whole=False)

    def events_of(self, body: Sequence[ast.stmt]) -> Iterator[Event]:
        """Yield the events of some statements."""
        return self._body(body, Way())

    def _body(self, body: Sequence[ast.stmt], way: Way) -> Iterator[Event]:
        for statement in body:
            yield from self._statement(statement, way)
            if isinstance(statement, ast.If) and not statement.orelse and _leaves(statement.body):
                way = way.into(statement, False)

    def _statement(self, node: ast.stmt, way: Way) -> Iterator[Event]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        if isinstance(node, ast.For | ast.AsyncFor):
            yield from self._expression(node.iter, way)
            yield from self._body(node.body, replace(way, loops=(*way.loops, node)))
        elif isinstance(node, ast.While):
            yield from self._body(node.body, replace(way, loops=(*way.loops, node)))
        elif isinstance(node, ast.If):
            yield from self._branches(node, way)
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from self._body(node.body, way)
        elif isinstance(node, ast.Try):
            yield from self._body(node.body, way)
            handled = [one for handler in node.handlers for one in handler.body]
            yield from self._body([*handled, *node.orelse], replace(way, sure=False))
            yield from self._body(node.finalbody, way)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                yield from self._body(case.body, replace(way, sure=False))
        else:
            yield from self._grads(node, way)
            yield from self._expression(node, way)

    def _branches(self, node: ast.If, way: Way) -> Iterator[Event]:
        """Yield the events of both branches of a condition, or of one branch if the calls decide which."""
        yield from self._expression(node.test, way)
        known = decided(self._program, node.test, way.frame)
        for body, arm in ((node.body, True), (node.orelse, False)):
            if known is None:
                yield from self._body(body, replace(way.into(node, arm), sure=False))
            elif known is arm:
                yield from self._body(body, way)

    def _grads(self, node: ast.stmt, way: Way) -> Iterator[Event]:
        """Yield an event for `p.grad = None`."""
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Attribute) and target.attr == "grad" and isinstance(node, ast.Assign):
                empty = isinstance(node.value, ast.Constant) and node.value.value is None
                yield Event("zero" if empty else "grad", target, "", (), way.sure, way.chain, way.frame, way.arms)

    def _expression(self, node: ast.AST, way: Way) -> Iterator[Event]:
        """Yield the events of the calls in an expression, the inner ones first."""
        if isinstance(node, ast.Lambda):
            return
        inner_way = replace(way, sure=False) if isinstance(node, ast.IfExp) else way
        for inner in ast.iter_child_nodes(node):
            yield from self._expression(inner, inner_way)
        if isinstance(node, ast.Call):
            yield from self._call(node, way)

    def _call(self, call: ast.Call, way: Way) -> Iterator[Event]:
        entered = flow(self._program).entered(call, way.frame)
        frame = None if entered is None else entered[1]
        inner = self._function(call) if frame is None else frame.function
        if inner is not None:
            if len(way.chain) < _DEEPEST and isinstance(inner, FUNCTIONS) and inner.name in self._busy:
                yield from self._body(inner.body, replace(way, chain=(*way.chain, call), frame=frame))
            return
        for given in call.args:  # a closure given to `optimizer.step`
            if isinstance(given, ast.Name) and given.id in self._busy and len(way.chain) < _DEEPEST:
                body = self._program.functions[given.id].body
                yield from self._body(body, replace(way, chain=(*way.chain, call)))
        kind, receiver = self._kind(call)
        loops = way.loops
        if kind == "zero" and "grad" in receiver:
            loops = ()  # a loop over parameters is one event
        if kind:
            yield Event(kind, call, receiver, loops, way.sure, way.chain, way.frame, way.arms)

    def _function(self, call: ast.Call) -> Function | None:
        """Return the function of the script that a compiled function calls."""
        program = self._program
        bound = program.bound(call.func)
        held = bound.value if bound is not None and bound.item is None else None
        if isinstance(held, ast.Call) and last(program.names.full(held.func)) in {"compile", "partial", "jit"}:
            first = held.args[0] if held.args else None
            return program.functions.get(first.id) if isinstance(first, ast.Name) else None
        return None

    def _kind(self, call: ast.Call) -> tuple[str, str]:
        full = self._program.names.full(call.func)
        if last(full) in _CLIPS:
            return "clip", ""
        if full in {"torch.autograd.backward", "torch.backward"}:
            return "backward", ""
        if full.endswith((".autograd.grad", ".grad", ".value_and_grad")):
            return "grad", ""
        if isinstance(call.func, ast.Attribute) and not full:
            return self._method(call, call.func)
        called = call.func.id if isinstance(call.func, ast.Name) else ""
        unknown = not full.startswith(("torch.", "numpy.", "math.")) and called not in _BUILDS
        if unknown and any(self._is_optimizer(one) for one in arguments(call)):
            return "opaque", ""
        return "", ""

    def _method(self, call: ast.Call, function: ast.Attribute) -> tuple[str, str]:
        name, receiver = function.attr, ast.unparse(function.value)
        if name in {"zero_grad", "backward", "eval"}:
            return {"zero_grad": "zero"}.get(name, name), receiver
        if name == "unscale_":
            return "unscale", receiver
        if name in _CLIPS:
            return "clip", receiver
        if name in {"zero_", "fill_"} and ".grad" in f".{receiver}":
            return "zero", receiver
        if name == "train":
            given = call.args[0] if call.args else None
            return ("eval" if constant(given) is False else "train"), receiver
        if name == "step":
            return self._step(call, function.value), receiver
        if any(self._is_optimizer(one) for one in arguments(call)):
            return "opaque", receiver
        return "", ""

    def _step(self, call: ast.Call, receiver: ast.expr) -> str:
        if any(self._is_optimizer(one) for one in call.args):
            return "step"  # a gradient scaler's
        if is_schedule(self._program, receiver):
            return "schedule"
        return "step" if self._is_optimizer(receiver) else ""

    def _is_optimizer(self, node: ast.expr) -> bool:
        return is_optimizer(self._program, node)


def _busy(program: Program) -> set[str]:
    """Return the names of the functions with events in them, or in functions that they call; others are passed over."""
    used = {one: set(map(ident, ast.walk(one))) - {""} for one in program.nodes if isinstance(one, FUNCTIONS)}
    found = {function.name for function, names in used.items() if any(map(_EVENTFUL.search, names))}
    while more := {one.name for one, names in used.items() if one.name not in found and names & found}:
        found |= more
    return found


def setting_of(program: Program, event: Event) -> list[ast.stmt]:
    """Return the statement that sets the variable at which a backward pass begins; nothing for other values."""
    bound = program.bound(event.value.node)
    return [bound.statement] if bound is not None and isinstance(bound.statement, ast.stmt) else []


def made(program: Program, node: ast.expr | None) -> ast.Call | None:
    """Return the call that makes what a name or an attribute of `self` holds."""
    if isinstance(node, ast.Call):
        return node
    if isinstance(node, ast.Name):
        held = program.value_of(node)
        return None if isinstance(held, ast.Name) else made(program, held)
    if of_self(node):
        calls = [one.value for one in program.attribute(program.owner(node), node.attr)]
        known = [one for one in calls if isinstance(one, ast.Call)]
        return known[-1] if known else None
    return None


def is_optimizer(program: Program, node: ast.expr | None) -> bool:
    """Tell whether an expression is an optimizer: made by the library, or called so."""
    call, name = _named(program, node)
    if call is not None and program.names.full(call.func).startswith("torch."):
        return makes_optimizer(program, call)
    return bool(_OPTIMIZER.search(name)) and not _SCHEDULE.search(name)


def _named(program: Program, node: ast.expr | None) -> tuple[ast.Call | None, str]:
    """Return the call that makes what a variable or an attribute holds, and its name; nothing for other expressions."""
    return (made(program, node), ident(node)) if isinstance(node, ast.Name | ast.Attribute) else (None, "")


def is_schedule(program: Program, node: ast.expr) -> bool:
    """Tell whether an expression is a schedule of the rate: made by the library, or called so."""
    call, name = _named(program, node)
    full = program.names.full(call.func) if call is not None else ""
    return "lr_scheduler." in full if full.startswith("torch.") else bool(_SCHEDULE.search(name))


@functools.lru_cache(maxsize=2)
def iterations(program: Program) -> tuple[Iteration, ...]:
    """Return the iterations of a program, in the order of the source; none if it computes and zeroes no gradients."""
    return tuple(Reader(program).iterations()) if has_attribute(program.tree, "backward", "zero_grad") else ()


def trainings(program: Program) -> list[Iteration]:
    """Return the iterations with a backward pass that is outside of inner loops."""
    return [one for one in iterations(program) if one.is_innermost]


def trains(program: Program, loop: ast.AST) -> bool:
    """Tell whether a loop computes gradients and takes steps with them."""
    return any(one.node is loop and one.of("backward") and one.of("step") for one in iterations(program))


def rounds(program: Program) -> list[Iteration]:
    """Return the loops that hold a training in an inner loop: epochs."""
    return [one for one in iterations(program) if one.whole and one.of("backward") and not one.own("backward")]


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Continue | ast.Break | ast.Raise)


def decided(program: Program, test: ast.expr, frame: Frame | None) -> bool | None:
    """Return the truth of a condition if the calls that lead to it decide it; None otherwise."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = decided(program, test.operand, frame)
        return None if inner is None else not inner
    if frame is None:
        return None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(program, test, frame)
    one = flow(program).end(Value(test, frame))
    value = constant(one.node) if one is not None and not one.path else None
    return value if isinstance(value, bool) else None


def _compared(program: Program, test: ast.Compare, frame: Frame) -> bool | None:
    found = [flow(program).end(Value(one, frame)) for one in (test.left, test.comparators[0])]
    left, right = (one.node if one is not None and not one.path else None for one in found)
    turned = isinstance(test.ops[0], ast.NotEq | ast.IsNot)
    if not isinstance(right, ast.Constant) or not isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return None
    if isinstance(left, ast.Constant):
        return (left.value == right.value) is not turned
    return turned if isinstance(left, ast.Call) and right.value is None else None
