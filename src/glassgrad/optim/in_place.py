"""Update rules compiled to functions that work in place, one for each path through a rule.

The first step of a parameter runs the rule on terms that record the computation. From the record a function is
generated: numbers and conditions first, then one NumPy call per operator, which writes to an array that is no longer
needed. For large parameters, native code replaces these calls (`native_update`). Later steps call that function once
for several parameters in a row. Everything that depends only on the options of the group is computed before its loop.
The function checks whether the conditions still hold, such as ``if group.weight_decay`` or ``t == 1``. It returns the
first parameter for which they do not hold; the rule is then recorded again for that parameter. `InPlace.sources` has
the text of the functions.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glassgrad.engine.terms import PLAIN, Number, Term
from glassgrad.ops.core import REGISTRY, Array, Elementwise, Primitive
from glassgrad.ops.kernels.ways import Dtype
from glassgrad.optim.equations import Run, Update, begin, check_shape
from glassgrad.optim.native_update import Batch, guarded, update_of
from glassgrad.optim.value import Value, as_number

Options = dict[str, Any]  # of a group, or the state of a parameter
Item = tuple[Array, Array, Options]  # a parameter's array, its gradient, its state
Step = Callable[[Iterator[Item], Options], Item | None]  # returns the first item that does not fit

_SMALL = 8192  # elements up to which a new array costs less than reusing one
_MOST = 16  # functions kept per shape
_UNFIT, _NONE_FITS = "return p, g, state", "return next(items, None)"
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_TAKEN = "natively", "batch", "p", "g", "state", "items", "group", "shape", "np", "begin", "as_number", "scratch"


class InPlace:
    """The functions generated from one optimizer's rule, and the memory that they share.

    A rule reads numbers from its group and its state. Anything read from elsewhere counts as constant.

    Attributes:
        steps: the functions for each shape of a parameter, newest first.
        latest: the last function that fitted, for each shape.
        batch: parameters for native code; a step ends with ``batch.end()``.
    """

    def __init__(self) -> None:
        self.steps: dict[tuple[int, ...], list[Step]] = {}
        self.latest: dict[tuple[int, ...], Step] = {}
        # Functions for parameters of any shape: one list for small ones, one for the others.
        self._general: dict[bool, list[Step]] = {True: [], False: []}
        self._pools: dict[tuple[Dtype, int], Array] = {}
        self.batch = Batch()

    def __reduce__(self) -> Any:
        return InPlace, ()  # a copy generates its own functions

    @property
    def sources(self) -> list[str]:
        """The texts of the generated functions."""
        return list({id(step): step.__doc__ or "" for steps in self.steps.values() for step in steps}.values())

    def step(self, update: Update, p: Array, g: Array, state: Options, group: Options, owner: str) -> None:
        """Update a parameter and its state."""
        try:
            self._step(update, p, g, state, group, owner)
        finally:
            self.batch.flush()

    def _step(self, update: Update, p: Array, g: Array, state: Options, group: Options, owner: str) -> None:
        item, shape = (p, g, state), p.shape
        for step in self.steps.get(shape, ()):
            if step(iter((item,)), group) is None:
                self.latest[shape] = step
                return
        steps = self.steps.setdefault(shape, [])
        del steps[_MOST - 1 :]
        general = self._general[is_small(p)]
        for step in general if shape else ():
            if step not in steps and step(iter((item,)), group) is None:
                steps.insert(0, step)
                self.latest[shape] = step
                return
        recorder = Recorder(p, g, state, group, owner)
        recorder.news["p"] = recorder.apply(update)
        step = self.latest[shape] = self._written(recorder)
        steps.insert(0, step)
        if not recorder.of_one_shape:
            general.insert(0, step)
            del general[_MOST:]
        if step(iter((item,)), group) is not None:
            raise AssertionError(f"a rule that was just written out does not hold:\n{step.__doc__}")

    def _written(self, recorder: Recorder) -> Step:
        source, names = Writer(recorder, self.batch).function()
        names["scratch"] = self.scratch
        exec(_compiled(source), names)  # noqa: S102 - the text is generated here
        step: Step = names["step"]
        step.__doc__ = source
        return step

    def scratch(self, like: Array, count: int) -> list[Array]:
        """Return arrays for intermediate results: views of buffers that the parameters use one after the other."""
        found = []
        for slot in range(count):
            pool = self._pools.get((like.dtype, slot))
            if pool is None or pool.size < like.size:
                pool = self._pools[like.dtype, slot] = np.empty(like.size, like.dtype)
            found.append(pool[: like.size].reshape(like.shape))
        return found


def is_small(p: Array) -> bool:
    """Tell whether new arrays are cheaper than scratch memory for a parameter; 0-d ones need `out` arrays."""
    return bool(p.shape) and p.size < _SMALL


def fits_none(items: Iterator[Item], group: Options) -> Item | None:
    """The `Step` of a shape that has no generated function yet."""
    return next(items, None)


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> Any:
    return compile(source, "<an update rule, in place>", "exec")


class Recorder(Run):
    """Records the computation of a rule.

    Attributes:
        first: the lines of the function for numbers and conditions that depend only on the options, in order.
        lines: the other lines for numbers and conditions, inside the loop over parameters.
        slots: name in the state -> its array before the step.
        counts: name in the state -> the variable of the tensor of a number.
        computed: the arrays made by the rule, in order.
        of_options: the variables of numbers that depend only on the options.
        of_one_shape: whether the record holds only for parameters of this shape.
        small: whether the function is for small parameters.
    """

    def __init__(self, p: Array, g: Array, values: Options, group: Options, owner: str) -> None:
        super().__init__(values, group, owner)
        self.p = Term(self, Value(p.shape, p.dtype, "p"))
        self.g = Term(self, Value(g.shape, g.dtype, "g"))
        self.first: list[str] = []
        self.lines: list[str] = []
        self.slots: dict[str, Value] = {}
        self.counts: dict[str, str] = {}
        self.computed: list[Value] = []
        self.of_options: set[str] = set()
        self.of_one_shape = not p.shape
        self.small = is_small(p)
        self._options: Options = {}
        self._numbers: dict[str, Number] = {}
        self._taken = {*_TAKEN, *REGISTRY, *dir(builtins)}
        if "maximize" in group:
            self.option("maximize")

    def shape(self, term: Term) -> tuple[int, ...]:
        self.of_one_shape = True  # the rule may compute something else for another shape
        return super().shape(term)

    def compute(self, prim: Primitive, args: tuple[Any, ...], params: Options) -> Any:
        if prim.name == "where" and [type(arg) for arg in args] == [Number, Term, Term]:
            return args[1] if args[0] else args[2]
        given = tuple([arg.what if type(arg) is Term else arg for arg in args])
        aval = prim.abstract(*[arg.known if type(arg) is Number else arg for arg in given], **params)
        made = Value(aval.shape, aval.dtype, "", prim, given, params)
        self.computed.append(made)
        if not isinstance(prim, Elementwise):
            self.of_one_shape = True
        return Term(self, made)

    # --- numbers --------------------------------------------------------------------------------------

    def number(self, name: str, args: tuple[Any, ...]) -> Any:
        text, function = PLAIN[name]
        value = function(*[arg.known if type(arg) is Number else arg for arg in args])
        return self._named(text.format(*[_text(arg) for arg in args]), value)

    def _named(self, text: str, value: Any, name: str = "") -> Number:
        """Return the number that a text computes, reusing an earlier one with the same text."""
        if text not in self._numbers:
            variable = self.new_variable(name) if name else f"n{len(self._numbers)}"
            # Options are read first; a number computed after a condition on the state must not move before it.
            first = not self.lines or bool(name)
            (self.first if first else self.lines).append(f"{variable} = {text}")
            if first:
                self.of_options.add(variable)
            self._numbers[text] = Number(self, variable, value)
        return self._numbers[text]

    def new_variable(self, wanted: str) -> str:
        """Return an unused variable name for the function; numbered names end in a letter and a number."""
        while wanted in self._taken or keyword.iskeyword(wanted) or re.fullmatch(r"\w*[a-z]\d+", wanted):
            wanted += "_"
        self._taken.add(wanted)
        return wanted

    def truth(self, number: Number) -> bool:
        value = bool(number.known)
        demand = self._demand if self.lines else self._demand_first
        demand(f"not {number.what}" if value else number.what)
        return value

    def _demand(self, unfit: str) -> None:
        """Make the function return a parameter that its record does not fit."""
        line = f"if {unfit}: {_UNFIT}"
        if line not in self.lines:
            self.lines.append(line)

    def _demand_first(self, unfit: str) -> None:
        """Make the function return before its loop if the options do not fit its record."""
        line = f"if {unfit}: {_NONE_FITS}"
        if line not in self.first:
            self.first.append(line)

    def option(self, name: str) -> Any:
        if name not in self._options:
            value, place = self.group[name], f"group[{name!r}]"
            if isinstance(value, tuple | list):
                parts = [self._option(one, f"{place}[{at}]", f"{name}_{at}") for at, one in enumerate(value)]
                self._options[name] = tuple(parts)
            else:
                self._options[name] = self._option(value, place, name)
        return self._options[name]

    def _option(self, value: Any, place: str, name: str) -> Any:
        if value is None or isinstance(value, bool):
            self._demand_first(f"{place} is not {value}")
            return value
        if isinstance(value, int | str):
            self._demand_first(f"{place} != {value!r}")
            return value
        number = self._named(place, float(value), name)
        name = number.what
        self._demand_first(f"{name}.__class__ is not float and ({name} := as_number({name})) is None")
        return number

    # --- the state ------------------------------------------------------------------------------------

    def array(self, name: str, like: Term) -> Any:
        if name not in self.news:
            slot = self.slots.get(name)
            if slot is None:
                shape, dtype = like.what.shape, like.dtype
                if name in self.values:
                    found = self.values[name].array
                    check_shape(self.owner, name, found.shape, shape)
                    dtype = found.dtype
                slot = self.slots[name] = Value(shape, dtype, self.new_variable(name))
            return Term(self, slot)
        return self.news[name]

    def stored(self, name: str, start: float) -> Any:
        if name not in self.news:
            known = float(self.values[name].array) if name in self.values else start
            if name not in self.counts:
                variable = self.counts[name] = self.new_variable(name)
                made = f"begin(state, {name!r}, (), float64, {start!r})"
                self.lines.append(f"{variable} = (state[{name!r}] if {name!r} in state else {made}).array")
            return self._named(f"{self.counts[name]}.item()", known)
        return self.news[name]

    def lacks(self, name: str) -> bool:
        lacks = name not in self.values
        self._demand(f"{name!r} {'in' if lacks else 'not in'} state")
        return lacks


def _text(arg: Any) -> str:
    if type(arg) is Number:
        return str(arg.what)
    number = float(arg) if isinstance(arg, float) else arg  # NumPy scalars become Python floats, which promote weakly
    return repr(number) if number >= 0 else f"({number!r})"


class Writer:
    """Generates the function of a record, and assigns memory to every array.

    An operator writes to memory that is no longer needed: preferably the state array or parameter to whose new value it
    contributes; else the memory of an operand; else scratch memory.
    """

    def __init__(self, recorder: Recorder, batch: Batch) -> None:
        self.recorder, self.batch = recorder, batch
        self.names: Options = {
            "np": np,
            "begin": begin,
            "as_number": as_number,
            "sqrt": math.sqrt,
            "float64": np.dtype(np.float64),
        }
        self.p: Value = recorder.p.what
        slots = {"p": self.p, **recorder.slots}
        news = [(name, term.what) for name, term in recorder.news.items() if type(term) is Term]
        self.targets = [(slots[name], new) for name, new in sorted(news, key=lambda one: one[0] != "p")]
        self.order, self.last = self._lives()
        self.goals = self._goals()
        self.lines: list[str] = []
        self.numbers: dict[tuple[str, str], str] = {}  # a number and a dtype -> the variable of an array of it
        self.slots: list[str] = []  # variables of scratch memory
        self.free: list[str] = []  # unused ones among them
        self.unused: list[str] = []  # variables of arrays that are no longer needed
        given = (self.p, recorder.g.what, *recorder.slots.values())
        self.variable: dict[Value, str] = {value: value.variable for value in given}
        self.lies_in: dict[Value, str] = {}  # a value -> the variable of its memory
        self.holds = {target: target for target, _ in self.targets}  # the current content of each target's array

    def function(self) -> tuple[str, Options]:
        """Return the text of the function, and its global names."""
        for at, value in enumerate(self.order):
            self._computed(at, value)
        self._moved()
        given = [self.p, self.recorder.g.what, *self.recorder.slots.values()]
        update = update_of(given, self.order, self.targets) if self.p.shape else None
        lines = [*self._memory(), *self.lines]
        self.lines = guarded(update, self.batch, given, lines, self.names, self.recorder.small)
        self._stored()
        each = [*self._checks(), *self.recorder.lines, *self._arrays(), *self.lines]
        numbers = [f"{variable} = np.asarray({text}, {dtype})" for (text, dtype), variable in self.numbers.items()]
        lines = [*self.recorder.first, *numbers, "for p, g, state in items:", *[f"    {line}" for line in each]]
        return "def step(items, group):\n" + "".join([f"    {line}\n" for line in lines]), self.names

    # --- lifetimes of values --------------------------------------------------------------------------

    def _lives(self) -> tuple[list[Value], dict[Value, int]]:
        """Return the values to compute, and the last use of each."""
        needed = {new for _, new in self.targets}
        for value in reversed(self.recorder.computed):
            if value in needed:
                needed.update(value.arrays)
        order = [value for value in self.recorder.computed if value in needed]
        last = dict.fromkeys((new for _, new in self.targets), len(order))
        for at in reversed(range(len(order))):
            until = last[order[at]] if order[at].is_view else at
            for arg in order[at].arrays:
                last[arg] = max(last.get(arg, -1), until)
        return order, last

    def _goals(self) -> dict[Value, Value]:
        """Return for each value the target to which it contributes."""
        goals: dict[Value, Value] = {}
        for target, new in self.targets:
            if new.prim is not None and new.is_like(target):
                goals.setdefault(new, target)
        for at in reversed(range(len(self.order))):
            value = self.order[at]
            if value in goals and value.function is not None:
                parts = [arg for arg in value.arrays if arg.prim and arg.function and arg.is_like(value)]
                part = next((arg for arg in parts if self.last[arg] == at and arg not in goals), None)
                if part is not None:
                    goals[part] = goals[value]
        return goals

    # --- one operator ---------------------------------------------------------------------------------

    def _computed(self, at: int, value: Value) -> None:
        """Write the call that computes a value."""
        function = value.function
        operands = [self._operand(arg, value, function) for arg in value.args]
        out = self._out(at, value) if function is not None else None
        call = self._call(value, function, operands, out)
        over = [one for one in self.order[:at] if self.last[one] == at]
        names = dict.fromkeys([self.variable[one] for one in over if one not in self.goals])
        if out is not None and out not in self.slots:  # memory that already has a variable
            names.pop(out, None)
            self.variable[value] = out
        elif function is None and self._takes(value, at):
            self.variable[value] = self.goals[value].variable
            call = f"{self.variable[value]}[...] = {call}"
        else:
            if out is not None or value.is_new:
                self.lies_in[value] = out or ""
            self.unused += names
            names = {}
            self.variable[value] = self.unused.pop() if self.unused else f"t{at}"
            call = f"{self.variable[value]} = {call}"
        self.lines.append(call)
        self.unused += names
        self.free += [slot for one in over if (slot := self.lies_in.get(one)) and slot != self.lies_in.get(value)]

    def _operand(self, arg: Any, value: Value, function: object) -> str:
        """Return the text of an operand; numbers that NumPy would convert each time become arrays before the loop."""
        if type(arg) is Value:
            return self.variable[arg]
        text = _text(arg)
        same = all(one.dtype == value.dtype for one in value.arrays)
        if function is None or not same or not self.recorder.small or text not in self.recorder.of_options:
            return text
        key = text, self._dtype(value)
        if key not in self.numbers:
            self.numbers[key] = self.recorder.new_variable(f"{text}_array")
        return self.numbers[key]

    def _out(self, at: int, value: Value) -> str | None:
        """Return the variable of the memory for a value; None for new memory."""
        if self._takes(value, at):
            return self.goals[value].variable
        for arg in value.arrays:
            if arg in self.lies_in and self.last[arg] == at and arg.is_like(value) and arg.is_like(self.p):
                self.lies_in[value] = self.lies_in[arg]
                return self.variable[arg]
        if self.recorder.small or not value.is_like(self.p):
            return None
        if not self.free:
            self.slots.append(f"s{len(self.slots)}")
            self.free.append(self.slots[-1])
        return self.free.pop()

    def _takes(self, value: Value, at: int) -> bool:
        """Put a value into the memory of the target to which it contributes, if the old value is no longer needed."""
        target = self.goals.get(value)
        if target is None or self.last.get(self.holds[target], -1) > at:
            return False
        self.holds[target] = value
        return True

    def _call(self, value: Value, function: object, operands: list[str], out: str | None) -> str:
        assert value.prim is not None
        if function is None:
            return f"{self._name(value)}({', '.join(operands)})"
        sign = _SIGNS.get(value.prim.name)
        if sign is not None and out in {None, operands[0]}:
            return f"{operands[0]} {sign}{'=' if out else ''} {operands[1]}"
        return f"np.{value.prim.forward}({', '.join([*operands, *([] if out is None else ['out=' + out])])})"

    def _name(self, value: Value) -> str:
        assert value.prim is not None
        name = f"{value.prim.name}{len(self.names) if value.params else ''}"
        self.names[name] = functools.partial(value.prim.evaluate, **value.params)
        return name

    # --- around the operators -------------------------------------------------------------------------

    def _checks(self) -> list[str]:
        g = self.recorder.g.what
        shape = "shape" if g.shape == self.p.shape else repr(g.shape)
        tests = [self._is_not("p", self.p), self._is_not("g", g), f"g.shape != {shape}"]
        return ["shape = p.shape", f"if {' or '.join(tests)}: {_UNFIT}"]

    def _is_not(self, variable: str, value: Value) -> str:
        """Return a test for a different dtype; it compares identity first, since most dtypes are singletons."""
        dtype = self._dtype(value)
        return f"({variable}.dtype is not {dtype} and {variable}.dtype != {dtype})"

    def _dtype(self, value: Value) -> str:
        name = value.dtype.name if value.dtype.isnative else f"swapped_{value.dtype.name}"
        self.names[name] = value.dtype
        return name

    def _arrays(self) -> list[str]:
        """Return the lines that read the state."""
        lines = []
        for name, slot in self.recorder.slots.items():
            shape = "shape" if slot.shape == self.p.shape else repr(slot.shape)
            dtype = self._dtype(slot)
            made = f"begin(state, {name!r}, {shape}, {dtype})"
            lines += [
                f"{slot.variable} = (state[{name!r}] if {name!r} in state else {made}).array",
                f"if {slot.variable}.shape != {shape} or {self._is_not(slot.variable, slot)}: {_UNFIT}",
            ]
        return lines

    def _memory(self) -> list[str]:
        """Return the line that gets scratch memory."""
        return [f"[{', '.join(self.slots)}] = scratch(p, {len(self.slots)})"] if self.slots else []

    def _moved(self) -> None:
        """Write the lines that store arrays which are not yet in their place."""
        moved = [(target, new) for target, new in self.targets if self.holds[target] is not new]
        for at, (target, new) in enumerate(moved):
            if any(new is other for other, _ in moved[:at]):  # it would be overwritten
                self.lines.insert(0, f"k{at} = {new.variable}.copy()")
                self.lines.append(f"{target.variable}[...] = k{at}")
            else:
                self.lines.append(f"{target.variable}[...] = {self.variable[new]}")

    def _stored(self) -> None:
        """Write the lines that store numbers."""
        for name, value in self.recorder.news.items():
            if type(value) is not Term:
                self.lines.append(f"{self.recorder.counts[name]}[...] = {_text(value)}")
