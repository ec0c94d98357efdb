"""The tracer runs a function on Symbols and records the ops applied to them.

While a tracer is active, every Tensor that an op touches is *lifted*: a Symbol replaces its array, which is restored
when the trace ends, even on an error. Tensors that existed before are state: inputs of the program and, if they were
written to, updates.
"""

from __future__ import annotations

import bisect
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.compile.front import origin, symbol
from glassgrad.compile.front.calls.feeds import Draws, Feed, number_reader
from glassgrad.compile.front.calls.parameters import Args
from glassgrad.compile.front.infer import infer
from glassgrad.compile.front.origin import Origin
from glassgrad.compile.front.state import memory
from glassgrad.compile.front.state.grad_watch import GradWatch
from glassgrad.compile.front.state.lifted import Lifted
from glassgrad.compile.front.state.newcomers import Newcomers
from glassgrad.compile.front.symbol import Symbol, View
from glassgrad.compile.ir.graph import GraphBuilder, Instr, Operand, Params, Var
from glassgrad.engine.mode import MODE, RECORDING, TRACING
from glassgrad.engine.node import Node, next_sequence
from glassgrad.engine.random import Generator
from glassgrad.engine.tape import Observer
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import MUTATIONS
from glassgrad.ops import narrow, promotion, recurrent_scan
from glassgrad.ops.core import Array, Elementwise, Primitive
from glassgrad.ops.shape import alias_p, astype_p, broadcast_to_p
from glassgrad.ops.views import memory_owner

_OPTIMIZERS = f"{provenance.PACKAGE}optim"
_NUMBERS = frozenset({bool, int, float, complex})
_SMALL = 4096  # constants up to this many bytes are copied and shared by content


class Tracer(Observer):
    """One trace: collects instructions, constants, lifted tensors and feeds.

    Attributes:
        builder: holds the instructions so far.
        lifted: the lifted tensors in the order of first use.
        cotangents: forward value -> the total cotangent that the backward walk found for it.
        calls: numbers the user's calls while the function runs.
        rules: the derivative rules that are being applied, the innermost last.
        marks_stops: whether `detach` becomes an instruction, for a graph that will be differentiated again.
        place: the origin given to forward instructions while a graph is being replayed.
        values: tape sequence numbers at which instructions were appended, and the instruction; maps a node of the tape
            to its instruction.
        whole: names of composites that stay one instruction instead of being decomposed: if nothing is recorded, and
            those whose residuals are results in any case.
    """

    whole: frozenset[str] = recurrent_scan.NAMES

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)
        self.lifted: list[Lifted] = []
        self._memory: set[int] = set()  # owners of memory that tensors made in the function share and write to
        self._looks: list[Lifted] = []  # views of lifted tensors: neither inputs nor updates
        self.feeds: list[Feed] = []
        self.numbers: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self.generators: list[Generator] = []
        self.owners: list[object] = []
        self.grads = GradWatch(self)
        self.cotangents: dict[Var, Var] = {}
        self.symbols: list[weakref.ref[Symbol]] = []
        self.calls = origin.Calls()
        self.rules: list[origin.Rule] = []
        self.marks_stops = False
        self.place: Origin | None = None
        self.over = False
        self.once = False
        self._stamps: list[int] = []
        self._stamped: list[Instr] = []
        self._owned: dict[int, Lifted] = {}
        self._arrays: dict[int, tuple[Array, Symbol]] = {}
        self._constants: dict[Hashable, Var] = {}
        self._kept: list[object] = []
        self.live: dict[int, str] = {}  # arrays that the function closes over, by their ids
        self.used_arrays: set[int] = set()
        self.newcomers = Newcomers()
        self._producer: dict[Var, Instr] = {}
        self._labels: dict[Var, str] = {}
        self._numbers: dict[tuple[int, str, int | None], Var] = {}

    # --- instructions -------------------------------------------------------------------------------

    def apply(self, prim: Primitive, args: Args, params: Params) -> Any:
        """Append one application of a primitive; the interpreter of Symbols."""
        if prim.decompose is not None and prim.name not in self.whole:
            return prim.decompose(*args, **params)
        weak = small = False
        for arg in args:
            if type(arg) is Symbol:
                weak, small = weak or arg.weak, small or arg._value.dtype.kind == narrow.NARROW
            elif type(arg) not in _NUMBERS:
                small = small or narrow.is_narrow(arg)
        if small and not narrow.stays(prim, args):
            return narrow.in_single(prim, args, params)
        here = origin.look(2, self.calls, self.rules)
        if self.place is not None and here.origin.role == origin.FORWARD:
            here.origin = self.place
        self._check(args, here)
        if weak:
            args, weak = self._strengthened(prim, args)
        operands = tuple([self._operand(arg) for arg in args])
        avals = infer(prim, args, params)
        outputs = tuple([self.builder.var(aval.shape, aval.dtype) for aval in avals])
        self._append(Instr(prim.name, operands, outputs, params, here.origin))
        if prim.multiple:
            return tuple([self._symbol(var) for var in outputs])
        result = self._symbol(outputs[0], weak)
        looks = prim.is_view and len(args) == 1 and isinstance(args[0], Symbol)
        if looks and symbol.is_look(prim, args[0], params):
            result.view = View(args[0], prim, params)
        return result

    def _append(self, instr: Instr) -> None:
        self.builder.instrs.append(instr)
        self._stamps.append(next_sequence())
        self._stamped.append(instr)
        for var in instr.outputs:
            self._producer[var] = instr

    def _symbol(self, var: Var, weak: bool = False) -> Symbol:
        made = Symbol(self, var, weak=weak)
        self.symbols.append(weakref.ref(made))
        return made

    def _check(self, args: Args, here: origin.Here) -> None:
        for arg in args:
            if isinstance(arg, Symbol) and (self.over or arg.tracer is not self):
                if arg.tracer.over or self.over:
                    raise errors.TRACE_OVER(what=arg.described(), where=here.origin.place, origin=arg.history())
                raise AssertionError("two traces in one thread")
        if here.rule is None:
            return
        node, cotangent = here.rule.node, here.rule.cotangent
        made = self.instr_of(node.seq)
        if made is not None and isinstance(cotangent, Symbol) and len(made.outputs) == 1:
            self.cotangents.setdefault(made.output, cotangent.var)
        for arg in args:
            written = arg.written_since(node.seq) if isinstance(arg, Symbol) else None
            if written is not None and any(arg is origin.inside(saved) for saved in here.rule.saved):
                raise errors.SAVED_OVERWRITTEN(
                    what=arg.described(),
                    op=node.prim.name,
                    saved=node.place,
                    written=written,
                    hint="x = x + ...",
                )

    def instr_of(self, sequence: int) -> Instr | None:
        """Return the instruction of the tape's node with this sequence number."""
        low = bisect.bisect_left(self._stamps, sequence)
        return self._stamped[low - 1] if low else None

    def nodes(self) -> dict[int, Instr]:
        """Return the forward instruction for every sequence number that an instruction mentions."""
        instrs = self.builder.instrs
        numbers = {instr.where.node for instr in instrs if isinstance(instr.where, Origin) and instr.where.node}
        return {number: made for number in numbers if (made := self.instr_of(number)) is not None}

    def _strengthened(self, prim: Primitive, args: Args) -> tuple[Args, bool]:
        """Give weak operands the dtype that NumPy gives to Python numbers."""
        strong = [arg.dtype for arg in args if hasattr(arg, "dtype") and not (isinstance(arg, Symbol) and arg.weak)]
        if not strong:
            return args, isinstance(prim, Elementwise)
        wanted = np.result_type(*strong, 0.0)
        return (
            tuple(
                self.apply(astype_p, (arg.tracer.strong(arg),), {"dtype": wanted})
                if isinstance(arg, Symbol) and arg.weak
                else arg
                for arg in args
            ),
            False,
        )

    def strong(self, weak: Symbol) -> Symbol:
        """Return the same value as a Symbol with a fixed dtype."""
        return Symbol(self, weak.var)

    def _operand(self, arg: Array) -> Operand:
        if isinstance(arg, Symbol):
            return arg.var
        if isinstance(arg, bool | int | float | complex) and not isinstance(arg, np.generic):
            return arg
        return self.constant(arg)

    def constant(self, value: Array) -> Var:
        """Capture an array; small ones are shared by content, and those that the user can change become inputs."""
        array = np.asarray(value)
        if self._memory and id(memory_owner(array)) in self._memory:
            shown: Symbol = memory.seen(*self._root(memory_owner(array)), array)
            return shown.var
        owner = array if id(array) in self.live else array.base
        if id(owner) in self.live and array.dtype != object:
            return self._closed_over(array, owner)
        if array.dtype == object:
            raise errors.COMPILE_RESULT(kind=type(value).__name__, path="")
        key: Hashable = id(value)
        if array.nbytes <= _SMALL:
            key = (array.dtype, array.shape, array.tobytes())
            array = array.copy()
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.builder.constant(array)
            self._kept.append(value)  # kept alive, so that its id is not reused
        return known

    def _closed_over(self, array: Array, owner: Array) -> Var:
        """Return the input for an array that the function closes over, or for a view of it."""
        self.used_arrays.add(id(owner))
        shared = self._arrays.get(id(array))
        if shared is None:
            holder = make(array, None, False)
            self._kept.append(holder)
            path = self.live[id(owner)] if owner is array else ""
            made = self._state_input(array, path, "an array that the function closes over")
            self.lifted.append(Lifted(weakref.ref(holder), array, made, made._value, path, False, existed=True))
            return made.var
        return shared[1].var

    def origin_of(self, var: Var) -> Any:
        """Return the `Origin` of a computed value, or a phrase for any other."""
        instr = self._producer.get(var)
        return instr.where if instr is not None else self._labels.get(var, "a constant")

    # --- writing ------------------------------------------------------------------------------------

    def write(self, target: Symbol, value: Array) -> None:
        """Set the value of `target`, and update everything that it is a view of."""
        value = self._fitted(target, value)
        if target.view is not None:
            view, source = target.view, target.view.source
            assert view.prim.write_back is not None
            written = view.prim.write_back(source, value, symbol.assigned, **view.params)
            if written is None:
                raise errors.TRACE_VIEW_WRITE(where=provenance.here(2), what=target.described(), op=view.prim.name)
            self.write(source, written)
            view.seen = source.stamp
        operand = self._operand(value)
        assert isinstance(operand, Var)  # after `_fitted`, it is a Symbol or an array
        target._value = operand
        target.version += 1
        where = origin.look(2, self.calls, self.rules).origin
        target.written = (next_sequence(), where)
        MUTATIONS.latest = target.written[0]

    def _fitted(self, target: Symbol, value: Array) -> Array:
        """Convert a value to the shape and dtype of its target memory, as NumPy does."""
        value = value if isinstance(value, Symbol) else np.asarray(value)
        if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "bifV":
            value = value.astype(target.dtype)
        if value.dtype != target.dtype and not promotion.fits(value.dtype, target.dtype):
            raise self._misfit(target, value)
        if value.dtype != target.dtype:
            value = astype_p(value, dtype=target.dtype)
        if value.shape != target.shape:
            try:
                fits = np.broadcast_shapes(value.shape, target.shape) == target.shape
            except ValueError:
                fits = False
            if not fits:
                raise self._misfit(target, value)
            value = broadcast_to_p(value, shape=target.shape)
        return value

    @staticmethod
    def _misfit(target: Symbol, value: Array) -> Exception:
        return errors.TRACE_WRITE_SHAPE(
            where=provenance.here(2),
            what=target.described(),
            given=f"{value.dtype}{list(value.shape)}",
            expected=f"{target.dtype}{list(target.shape)}",
        )

    # --- inputs -------------------------------------------------------------------------------------

    def argument(self, array: Array, name: str, *, weak: bool = False) -> Symbol:
        """Return a new input for an argument of the call."""
        var = self.builder.input(array.shape, array.dtype, name)
        self._labels[var] = "an argument"
        return self._symbol(var, weak)

    def feed(
        self, draw: Callable[[], Array], like: Array, label: str, name: str | None = None, *, pure: bool = False
    ) -> Symbol:
        """Return a new input that is drawn before every call."""
        var = self.builder.input(like.shape, like.dtype, name)
        self.feeds.append(Feed(var, draw, label, pure))
        self._labels[var] = label
        return self._symbol(var)

    def lift_number(self, options: dict[str, Any], name: str) -> Any:
        """Return a Symbol for a number in a dictionary of options, read again in every call; several for a tuple."""
        value = options[name]
        if isinstance(value, Tensor):
            return value.lifted()
        if isinstance(value, tuple):
            return tuple([self._lift_number(options, name, at, one) for at, one in enumerate(value)])
        return self._lift_number(options, name, None, value)

    def _lift_number(self, options: dict[str, Any], name: str, at: int | None, value: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return value
        key = (id(options), name, at)
        if key not in self._numbers:
            draw = number_reader(options, name, at)
            label = name if at is None else f"{name}{at + 1}"
            made = self.feed(draw, np.empty((), np.float64), f"the option {name!r}", label, pure=True)
            self._numbers[key] = made.var
            self.numbers.setdefault((id(options), name), (options, name, options[name]))
        return self._symbol(self._numbers[key])

    def replay(self, call: Callable[[], object], owner: object) -> None:
        """Record Python code that every call runs at this point, instead of running it now.

        The state of its `owner` changes from call to call and is not guarded.
        """
        self.owners.append(owner)
        self.feeds.append(Feed(None, call, getattr(call, "__qualname__", "a call")))
        self._numbers.clear()  # it may change them

    def lift(self, target: Tensor, state: bool = False, path: str = "", *, new: bool = False) -> None:
        """Replace the array of a Tensor by a Symbol, if it is state.

        A tensor that the function made itself, from numbers known while tracing, is a constant and is left unchanged
        unless the caller passes `state`; `new` avoids a search for the tensor.
        """
        if new:
            self.newcomers.welcome(target)
        array = target.array
        if type(array) is not np.ndarray:
            return
        existed = self.existed(target)
        if not existed and not state and not (self._memory and id(memory_owner(array)) in self._memory):
            return
        by_function = not existed and not sys._getframe(2).f_code.co_filename.startswith(_OPTIMIZERS)
        shared = self._arrays.get(id(array))
        if by_function and shared is None and not (array.base is None and memory.is_alone(target, 1)):
            self._lift_sharers(memory_owner(array))
            return
        if shared is not None:
            made = shared[1]
        else:
            label = "state that the function closes over" if existed else "a tensor made in the function"
            made = self._state_input(array, path, label)
        self._put(target, made, existed, by_function, path, first=shared is None)

    def _put(
        self,
        target: Tensor,
        made: Symbol,
        existed: bool,
        by_function: bool = False,
        path: str = "",
        *,
        first: bool = False,
    ) -> None:
        """Replace a tensor's array by a Symbol until the trace ends."""
        # A Symbol that was already written to keeps its first input.
        var = made._value if first else next((one.var for one in self.lifted if one.symbol is made), made._value)
        entry = Lifted(weakref.ref(target), target.array, made, var, path, target._tracks, existed, by_function)
        self.lifted.append(entry)
        target.array = made

    def _lift_sharers(self, owner: Array) -> None:
        """Replace the arrays of all tensors that share memory which the function is about to write to."""
        sharers = memory.sharers(owner)
        for one in sharers:
            if self.existed(one):
                self.lift(one)
        sharers = [one for one in sharers if type(one.array) is np.ndarray and one.array.size]
        base, root = self._root(owner, any(one.array is owner for one in sharers))
        shapes = memory.whole(base, sharers)
        for one in sharers:
            seen = memory.seen(base, root, one.array, shapes)
            if seen is root:
                self._put(one, root, existed=False, by_function=True)
                continue
            self._looks.append(Lifted(weakref.ref(one), one.array, None, root._value, "", one._tracks, existed=False))
            one.array = seen

    def _root(self, owner: Array, has_tensor: bool = False) -> tuple[Array, Symbol]:
        """Return an array in this memory and its Symbol; other arrays there become views of it."""
        self._memory.add(id(owner))
        known = next((known for known in self._arrays.values() if memory_owner(known[0]) is owner), None)
        if known is not None:
            return known
        if id(owner) in self.live:
            self._closed_over(owner, owner)
            return self._arrays[id(owner)]
        made = self._state_input(owner, "", "a tensor made in the function")
        if not has_tensor:
            self.lifted.append(Lifted(lambda: None, owner, made, made._value, "", tracks=False, existed=False))
        return owner, made

    def existed(self, target: Tensor) -> bool:
        """Tell whether a tensor existed before the trace."""
        return not self.newcomers.have(target)

    def _state_input(self, array: Array, path: str, label: str) -> Symbol:
        """Return a new input for an array that exists in every call."""
        var = self.builder.input(array.shape, array.dtype, path or None)
        made = self._symbol(var)
        self._arrays[id(array)] = (array, made)
        self._labels[var] = label
        return made

    def path_of(self, target: Tensor, suffix: str) -> str:
        """Return the expression with which the user would write a lifted tensor."""
        found = next((entry.path for entry in self.lifted if entry.ref() is target), "")
        return found + suffix if found else ""

    # --- watching the backward walk -------------------------------------------------------------------

    def rule(self, node: Node, g: Array, saved: tuple[Array, ...], position: int | None) -> None:
        """Record the rule that is about to append instructions."""
        if self.rules and self.rules[-1].node is node:
            self.rules.pop()
        self.rules.append(origin.Rule(node, g, saved, position))

    def left(self, node: Node) -> None:
        """Forget the rules of a node."""
        if self.rules and self.rules[-1].node is node:
            self.rules.pop()

    # --- running ------------------------------------------------------------------------------------

    @contextmanager
    def active(self) -> Iterator[None]:
        """Trace in this thread until the block ends; restore nothing (see `restore`)."""
        self.newcomers.start()
        before = MODE.saved()
        self.grads.start()
        try:
            MODE.lift, MODE.lift_number = self.lift, self.lift_number
            MODE.draws, MODE.replay, MODE.once = self._draws, self.replay, self._only_once
            MODE.stop = self._stopped if self.marks_stops else None
            MODE.observer = self
            MODE.whole = self.whole
            MODE.flags |= TRACING
            yield
        finally:
            MODE.restore(before)
            self.grads.stop()
            self.newcomers.stop()
            self.calls.forget()  # it keeps objects of the call alive

    def _stopped(self, array: Array) -> Array:
        """Return a view of a value that blocks gradients."""
        if not isinstance(array, Symbol):
            return array
        flags = MODE.flags
        MODE.flags = flags & ~RECORDING
        try:
            return alias_p(array)
        finally:
            MODE.flags = flags

    def _draws(self, generator: Generator) -> Draws:
        if not any(known is generator for known in self.generators):
            self.generators.append(generator)
        return Draws(self, generator)

    def _only_once(self) -> None:
        self.once = True

    def restore(self) -> None:
        """Restore the array of every lifted Tensor and the gradient of every leaf."""
        self.over = True
        interrupted = None
        for give_back in (*(entry.give_back for entry in (*self.lifted, *self._looks)), self.grads.restore):
            while True:
                try:
                    give_back()
                    break
                except KeyboardInterrupt as error:
                    # Delay a second Ctrl-C until everything is restored, or some parameters would keep Symbols.
                    interrupted = error
        if interrupted is not None:
            raise interrupted
