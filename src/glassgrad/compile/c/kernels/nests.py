"""A loop nest as plain loops of C, which gcc and clang turn into vectors.

The innermost loop runs along the axis on which memory is contiguous. If that is an outer axis, each sum along the inner
axes is an array with one total per element, and the innermost loop adds to all of them; otherwise sums are numbers, and
OpenMP's `simd` lets the compiler add several terms at once. Long sums are made of sums of blocks, as in native code.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from glassgrad.compile.c.expressions import ATOM, SIMPLE, C, written
from glassgrad.compile.c.helpers import Helpers
from glassgrad.compile.c.kernels.parts import Room, below, indented, position_of
from glassgrad.compile.c.sizes import Sizes
from glassgrad.compile.c.words import TYPES, literal
from glassgrad.compile.ir.graph import Var
from glassgrad.compile.llvm.loops.nest_layout import pass_roots
from glassgrad.compile.llvm.loops.scalar import identity_of
from glassgrad.compile.llvm.module.ir import is_float
from glassgrad.compile.plan.build_nest import vector_axis
from glassgrad.compile.plan.indexing.indices import Axis, Index
from glassgrad.compile.plan.nests import Access, Expr, Nest, Reduction, operands

BLOCK = 128  # terms that are added before their sum is added to the total
_KEEP_COST = 12  # more expensive values are kept for the next pass
_LONG = 88  # characters of an expression that stays in one line
_SHARED = 1 << 15  # the fewest points of a nest whose outermost loop runs on several threads
_COLUMNS, _BLOCKS = 64, 4  # the fewest columns that a thread takes, and the most blocks of them
_OWN = 1 << 12  # elements of scratch memory that each turn of a shared loop may have of its own
_COUNTERS = "ijklmn"


@dataclass
class _Level:
    """What is known inside one loop: its counters, its lines and its named values."""

    axes: set[Axis]
    lines: list[str] = field(default_factory=list)
    known: dict[Expr, C] = field(default_factory=dict)


class NestWriter:
    """Writes one nest.

    Args:
        nest: the loops.
        pointers: the name of the pointer to each array.
        words: the program's sizes, and the functions that it calls.
    """

    def __init__(self, nest: Nest, pointers: Callable[[Var], str], words: tuple[Sizes, Helpers]) -> None:
        self.nest = nest
        self.pointer = pointers
        self.sizes, self.helpers = words
        self.rooms: list[Room] = []
        self.levels = [_Level(set())]
        self.counters: dict[Axis, str] = {}
        self.axis = vector_axis(nest)
        self.bounds: dict[Axis, tuple[str, str]] = {}  # of loops over a part of an axis
        self.kept_apart = True  # whether all scratch memory varies along the vector axis
        self.lanes = bool(nest.inner) and self.axis in nest.outer
        self.finished = 0  # the level from which on the results of reductions are known
        self.done: dict[Expr, C] = {}  # reduced and kept values, as elements of arrays
        self.started: dict[Expr, C] = {}
        self.stored = {store.access.root for store in nest.stores}
        self.uses = Counter(part for expr in nest.expressions() for part in operands(expr))
        self.uses.update(store.value for store in nest.stores)
        self._count = self._choices = 0

    def lines(self) -> list[str]:
        """Return the body of the kernel."""
        outer = [axis for axis in self.nest.outer if not (self.lanes and axis == self.axis)]
        with ExitStack() as stack:
            if self.axis is not None and self._in_columns():
                step = max(_COLUMNS, -(-self.nest.extents[self.axis] // _BLOCKS))
                self.bounds[self.axis] = stack.enter_context(self._blocks(self.axis, [], step))
            stack.enter_context(self._loops(outer))
            self._write_passes()
        lines = self.levels[0].lines
        first = next((at for at, line in enumerate(lines) if line.startswith("for ")), 0)
        if (outer or self.bounds) and self._long() and self._apart(lines, first):
            simd = "simd" if len(outer) == 1 and not self.nest.inner else ""
            lines.insert(first, f"GG_SHARED({simd})")
        return lines

    def _long(self) -> bool:
        """Tell whether threads may share the outermost loop: it is long, and turns write to places that are known."""
        return self.nest.points >= _SHARED and not any(store.access.computed for store in self.nest.stores)

    def _in_columns(self) -> bool:
        """Tell whether threads take blocks of columns: sums of columns, each with scratch memory of its own."""
        wide = self.lanes and self.nest.extents[self.axis or 0] >= 2 * _COLUMNS
        writes = [store.access.index.axes for store in self.nest.stores]
        writes += [one.value.axes for one in self.nest.reductions]
        return wide and self._long() and all(self.axis in axes for axes in writes)

    def _apart(self, lines: list[str], first: int) -> bool:
        """Give each turn of the outermost loop scratch memory of its own if it needs little; tell whether it has."""
        if self.bounds:
            return self.kept_apart
        if sum(room.elements for room in self.rooms) <= _OWN:
            own = [f"    {TYPES[one.kind]} {one.name}[{self.sizes.text(one.elements)}];" for one in self.rooms]
            lines[first + 1 : first + 1], self.rooms = own, []
        return not self.rooms

    # --- loops -----------------------------------------------------------------------------------------

    @contextmanager
    def _loop(self, axis: Axis, bounds: tuple[str, str] | None = None, pragma: str = "") -> Iterator[None]:
        name = self.counters.get(axis) or next(
            one for one in (*_COUNTERS, *(f"at{number}" for number in range(99))) if one not in self.counters.values()
        )
        self.counters[axis] = name
        self.levels.append(_Level(self.levels[-1].axes | {axis}))
        yield
        inside = self.levels.pop()
        low, high = bounds or self.bounds.get(axis) or ("0", self.sizes.text(self.nest.extents[axis]))
        head = f"for (ptrdiff_t {name} = {low}; {name} < {high}; {name}++) {{"
        self.here.extend([*([pragma] if pragma else []), head, *(f"    {line}" for line in inside.lines), "}"])

    @contextmanager
    def _loops(self, axes: Sequence[Axis]) -> Iterator[None]:
        with ExitStack() as stack:
            for axis in axes:
                stack.enter_context(self._loop(axis))
            yield

    @contextmanager
    def _blocks(self, axis: Axis, inside: list[str], step: int = BLOCK) -> Iterator[tuple[str, str]]:
        """Open a loop over blocks of an axis; yield the bounds of a block. `inside` begins each block."""
        name = self._fresh("block")
        stop = self.sizes.text(self.nest.extents[axis])
        self.levels.append(_Level(set(self.levels[-1].axes), list(inside)))
        end = self._fresh("end")
        self.here.append(f"const ptrdiff_t {end} = {name} + {step} < {stop} ? {name} + {step} : {stop};")
        yield name, end
        block = self.levels.pop()
        head = f"for (ptrdiff_t {name} = 0; {name} < {stop}; {name} += {step}) {{"
        self.here.extend([head, *(f"    {line}" for line in block.lines), "}"])

    @property
    def here(self) -> list[str]:
        return self.levels[-1].lines

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    # --- values ----------------------------------------------------------------------------------------

    def value(self, expr: Expr) -> C:
        """Return the text of a value at this point of the loops; lines before it may give it a name."""
        for level in self.levels:
            if expr in level.known:
                return level.known[expr]
        if expr in self.done:
            return self.done[expr]
        if expr.op == "const":
            return C(literal(expr.data, expr.kind))
        if expr.op == "counter":
            return C(f"(int64_t)({self.index(expr.data)})")
        assert expr.op != "reduced", "a reduced value is used before its pass"
        number = self._level_of(expr)
        text = self._text(expr)
        alone = self.uses[expr] <= 1 and (number == len(self.levels) - 1 or expr.op == "load")
        safe = expr.op != "load" or self._may_be_inside(expr)
        if alone and safe and len(text.text) <= _LONG:
            return text
        return self._with_name(expr, text.text, self.levels[number])

    def _with_name(self, expr: Expr, text: str, level: _Level) -> C:
        """Give a value a name inside one loop."""
        level.known[expr] = name = C(self._fresh("t"))
        level.lines.append(f"const {TYPES[expr.kind]} {name.text} = {text};")
        return name

    def _level_of(self, expr: Expr) -> int:
        place = next(number for number, level in enumerate(self.levels) if expr.axes <= level.axes)
        return max(place, self.finished) if expr.stage else place

    def _text(self, expr: Expr) -> C:
        if expr.op == "load":
            return self._load(expr.data, expr.kind)
        self._choices += expr.op == "where"
        args = [self.value(arg) for arg in expr.args]
        self._choices -= expr.op == "where"
        if expr.op in SIMPLE:
            args = [self._named(arg, text) for arg, text in zip(expr.args, args, strict=True)]
        kinds = tuple(arg.kind for arg in expr.args)
        if expr.op == "where":
            kinds = kinds[1:]
        return written(expr.op, args, kinds, expr.kind, expr.data, self.helpers)

    def _named(self, expr: Expr, text: C) -> C:
        if text.level == ATOM and (text.text.isidentifier() or expr.op in {"const", "load"}):
            return text
        return self._with_name(expr, text.text, self.levels[self._level_of(expr)])

    def _may_be_inside(self, expr: Expr) -> bool:
        """Tell whether a load may stand inside of an expression.

        It may not if the nest stores to the array, nor inside of a choice: gcc 12 translates some vectors of chosen
        elements wrongly.
        """
        return expr.data.root not in self.stored and not self._choices

    def _side_by_side(self, access: Access) -> bool:
        moves = any(self.axis in computed.axes for computed, _ in access.computed)
        return not moves and dict(access.index.terms).get(self.axis or 0, 0) in {0, 1}

    def _load(self, access: Access, kind: str) -> C:
        if access.mask is None:
            return C(self.place(access))
        mask = self._named(access.mask, self.value(access.mask))
        index = "" if self._side_by_side(access) else f"{mask.text} ? "
        place = self.place(access, index, " : 0" if index else "")
        return C(f"{mask.text} ? {place} : {literal(0, kind)}", 0)

    def place(self, access: Access, before: str = "", after: str = "") -> str:
        """Return the element of an array as text; `before` and `after` stand around its index."""
        parts = [f"(ptrdiff_t){self.value(expr).at(ATOM)}{self._times(step)}" for expr, step in access.computed]
        index = self.index(access.index)
        if parts:
            index = " + ".join([*parts, *([] if index == "0" else [index])])
        return f"{self.pointer(access.root)}[{before}{index}{after}]"

    def index(self, index: Index) -> str:
        """Return an index as text."""
        found = ""
        for axis, stride in sorted(index.terms, key=lambda term: -abs(term[1])):
            sign = " - " if stride < 0 else " + " if found else ""
            found += f"{sign.strip() if not found else sign}{self.counters[axis]}{self._times(abs(stride))}"
        if index.offset or not found:
            size = self.sizes.text(abs(index.offset))
            found += f" {'-' if index.offset < 0 else '+'} {size}" if found else str(index.offset)
        return found

    def _times(self, stride: int) -> str:
        return "" if stride == 1 else f" * {self.sizes.text(stride)}"

    # --- passes ----------------------------------------------------------------------------------------

    def _write_passes(self) -> None:
        axis = self.axis if self.lanes else None
        if axis is not None:
            self.counters[axis] = next(one for one in reversed(_COUNTERS) if one not in self.counters.values())
        later = list(pass_roots(self.nest).values())
        for number, (reductions, stores) in enumerate(later):
            self._keep(later[number:])
            if axis is None:
                self._row_pass(reductions, stores)
            else:
                self._column_pass(axis, reductions, stores)
            self.done.update(self.started)
            if axis is not None:
                self._keep_columns(axis, later[number + 1 :])
        self._store_rest()

    # --- passes along rows ----------------------------------------------------------------------------

    def _row_pass(self, reductions: list[Reduction], stores: list[int]) -> None:
        axis, others = (self.nest.inner[-1], self.nest.inner[:-1]) if self.nest.inner else (None, [])
        names = self._accumulators(reductions)
        if axis is None:
            self._point(reductions, names, stores)
        else:
            sums = all(one.how == "add" and is_float(one.value.kind) for one in reductions)
            blocks = bool(reductions) and sums and self.nest.extents[axis] > 2 * BLOCK
            parts = bool(reductions) and sums and (blocks or bool(others))
            inner = [self._part(name) if parts else name for name in names]
            pragma = f"GG_SIMD_SUM({', '.join(inner)})" if reductions and sums else ""
            begin = [f"{TYPES[one.value.kind]} {part} = 0;" for one, part in zip(reductions, inner, strict=True)]
            with self._loops(others), ExitStack() as stack:
                bounds = stack.enter_context(self._blocks(axis, begin)) if blocks else None
                if parts and not blocks:
                    self.here.extend(begin)
                with self._loop(axis, bounds, pragma):
                    self._point(reductions, inner, stores)
                if parts:
                    self.here.extend(f"{name} += {part};" for name, part in zip(names, inner, strict=True))
        self._finish(reductions, names)

    @staticmethod
    def _part(name: str) -> str:
        return f"part_of_{name}"

    def _accumulators(self, reductions: list[Reduction]) -> list[str]:
        """Declare a number for each reduction; return the names."""
        names = []
        for one in reductions:
            name = self._fresh({"add": "sum", "maximum": "largest", "minimum": "smallest"}.get(one.how, "total"))
            names.append(name)
            self.here.append(f"{TYPES[one.value.kind]} {name} = {self._start(one)};")
            if one.position is not None:
                self.here.append(f"int64_t {name}_at = 0;")
        return names

    @staticmethod
    def _start(one: Reduction) -> str:
        how = {"argmax": "maximum", "argmin": "minimum"}.get(one.how, one.how)
        return literal(identity_of(how, one.value.kind), one.value.kind)

    def _point(self, reductions: list[Reduction], names: list[str], stores: list[int]) -> None:
        self._write_kept()
        for one, name in zip(reductions, names, strict=True):
            value = self.value(one.value)
            position = None if one.position is None else self.value(one.position).text
            self.here.extend(self._added(one, name, value, position))
        self._store_all(stores)

    def _added(self, one: Reduction, name: str, value: C, position: str | None) -> list[str]:
        kind = one.value.kind
        match one.how:
            case "add" | "multiply" if kind not in {"b1", "i8", "i16", "u8", "u16"}:
                return [f"{name} {'+' if one.how == 'add' else '*'}= {value.text};"]
            case "and" | "or":
                return [f"{name} = {name} {'&' if one.how == 'and' else '|'} {value.at(ATOM)};"]
        if position is not None:
            return self._better(one, name, value, position)
        if one.how in {"maximum", "minimum"} and is_float(kind):  # one after the other: a prediction is the fastest
            new, sign = self._named(one.value, value).text, ">" if one.how == "maximum" else "<"
            return [f"{name} = {new} {sign} {name} || {new} != {new} ? {new} : {name};"]
        return [f"{name} = {written(one.how, [C(name), value], (kind, kind), kind, None, self.helpers).text};"]

    def _better(self, one: Reduction, name: str, value: C, position: str) -> list[str]:
        """Return the lines that keep the first largest (or smallest) value and its place; the first NaN wins."""
        sign = ">" if one.how == "argmax" else "<"
        new = self._fresh("new")
        wins = f"{new} {sign} {name}"
        if is_float(one.value.kind):
            wins = f"{wins} || ({new} != {new} && {name} == {name})"
        kept = [f"{name} = {new};", f"{position_of(name)} = {position};"]
        return [f"const {TYPES[one.value.kind]} {new} = {value.text};", f"if ({wins}) {{", *indented(kept), "}"]

    def _finish(self, reductions: list[Reduction], names: list[str], at: str = "") -> None:
        self.finished = len(self.levels) - 1
        for one, name in zip(reductions, names, strict=True):
            place = C(f"{name if one.position is None else position_of(name)}{at}")
            source = one.value.kind if one.position is None else "i64"
            if source != one.kind:
                place = written("cast", [place], (source,), one.kind, one.kind, self.helpers)
            for expr in self.nest.expressions():
                if expr.op == "reduced" and expr.data is one:
                    self.done[expr] = place

    # --- passes along columns -------------------------------------------------------------------------

    def _column_pass(self, axis: Axis, reductions: list[Reduction], stores: list[int]) -> None:
        wide = [one for one in reductions if axis in one.value.axes]
        narrow = [one for one in reductions if axis not in one.value.axes]
        names = [self._array(one, axis) for one in wide]
        at = f"[{self.counters[axis]}]"
        starts = [self._start(one) for one in wide]
        self._clear(axis, names, starts)
        own = self._accumulators(narrow)
        *others, last = self.nest.inner
        sums = all(one.how == "add" and is_float(one.value.kind) for one in wide)
        blocks = bool(wide) and sums and self.nest.extents[last] > 2 * BLOCK
        parts = [self._array(one, axis, "part") for one in wide] if blocks else names
        with self._loops(others), ExitStack() as stack:
            bounds = stack.enter_context(self._blocks(last, [])) if blocks else None
            if blocks:
                self._clear(axis, parts, starts)
            with self._loop(last, bounds):
                self._point(narrow, own, [])
                if wide or stores:
                    with self._loop(axis):
                        self._point(wide, [f"{name}{at}" for name in parts], stores)
            if blocks:
                with self._loop(axis):
                    self.here.extend(f"{name}{at} += {part}{at};" for name, part in zip(names, parts, strict=True))
        self._finish(wide, names, at)
        self._finish(narrow, own)

    def _array(self, one: Reduction, axis: Axis, stem: str = "sum") -> str:
        name = self._fresh(stem if one.how == "add" else "total")
        self.rooms.append(Room(name, one.value.kind, self.nest.extents[axis]))
        if one.position is not None:
            self.rooms.append(Room(f"{name}_at", "i64", self.nest.extents[axis]))
        return name

    def _clear(self, axis: Axis, names: list[str], starts: list[str]) -> None:
        if not names:
            return
        at = f"[{self.counters[axis]}]"
        with self._loop(axis):
            self.here.extend(f"{name}{at} = {start};" for name, start in zip(names, starts, strict=True))
            taken = {room.name for room in self.rooms}
            self.here.extend(f"{name}_at{at} = 0;" for name in names if f"{name}_at" in taken)

    def _keep_columns(self, axis: Axis, later: list[tuple[list[Reduction], list[int]]]) -> None:
        """Compute what later passes need once for each column."""
        inner = set(self.nest.inner)
        needed = below(self._roots(later), lambda expr: expr in self.done)
        ready = [
            expr
            for expr in needed
            if expr.stage and not expr.axes & inner and axis in expr.axes and expr.op not in {"reduced", "const"}
        ]
        users = {part for expr in needed if expr.axes & inner for part in operands(expr)}
        wanted = [expr for expr in ready if expr in users and expr.cost >= 4 and expr.stage <= self._stage()]
        if not wanted:
            return
        rooms = [(expr, self._fresh("each")) for expr in wanted]
        with self._loop(axis):
            for expr, name in rooms:
                self.rooms.append(Room(name, expr.kind, self.nest.extents[axis]))
                self.here.append(f"{name}[{self.counters[axis]}] = {self.value(expr).text};")
        for expr, name in rooms:
            self.done[expr] = C(f"{name}[{self.counters[axis]}]")

    def _stage(self) -> int:
        """Return the number of passes whose results are known."""
        return max((expr.stage for expr in self.done if expr.op == "reduced"), default=0)

    # --- values kept for later passes -----------------------------------------------------------------

    def _roots(self, passes: list[tuple[list[Reduction], list[int]]]) -> list[Expr]:
        found: list[Expr] = []
        for reductions, stores in passes:
            found += [one.value for one in reductions]
            for number in stores:
                store = self.nest.stores[number]
                found += [store.value, *(expr for expr, _ in store.access.computed)]
        return found

    def _keep(self, passes: list[tuple[list[Reduction], list[int]]]) -> None:
        """Choose the expensive values of this pass that a later one needs again."""
        self.started = {}
        inner = set(self.nest.inner)
        if len(passes) < 2 or not inner:
            return
        now = below(self._roots(passes[:1]), lambda expr: expr in self.done)
        after = set(below(self._roots(passes[1:]), lambda expr: expr in self.done))
        for expr in now:
            covered = any(expr in operands(other) and other in self.started for other in now)
            costly = expr.cost >= _KEEP_COST and expr.op not in {"const", "counter", "load", "reduced"}
            if (
                expr not in self.done
                and expr in after
                and costly
                and expr.axes & inner
                and not covered
                and self.uses[expr] > 1
            ):
                axes = [axis for axis in self.nest.inner if axis in expr.axes]
                if self.lanes and self.axis in expr.axes and self.axis is not None:
                    axes.append(self.axis)
                self.kept_apart &= self.axis in axes
                name = self._fresh("kept")
                self.rooms.append(Room(name, expr.kind, math.prod(self.nest.extents[axis] for axis in axes)))
                self.started[expr] = C(f"{name}[{self._flat(axes)}]")

    def _flat(self, axes: list[Axis]) -> str:
        """Return the place of a kept value, with counters that are known once the loops are open."""
        stride, terms = 1, []
        for axis in reversed(axes):
            terms.append((axis, stride))
            stride *= self.nest.extents[axis]
        free = [one for one in _COUNTERS if one not in self.counters.values()]
        self.counters.update(zip([axis for axis in self.nest.inner if axis not in self.counters], free, strict=False))
        return self.index(Index(0, tuple(sorted(terms))))

    def _write_kept(self) -> None:
        """Store the values of this point that a later pass needs."""
        for expr, place in self.started.items():
            level = self.levels[-1]
            if expr.axes <= level.axes and not any(expr in one.known for one in self.levels):
                name = self._with_name(expr, self._text(expr).text, level)
                level.lines.append(f"{place.text} = {name.text};")

    # --- stores ---------------------------------------------------------------------------------------

    def _store_rest(self) -> None:
        """Store the values that do not vary along the inner axes."""
        inner = set(self.nest.inner)
        rest = [at for at, store in enumerate(self.nest.stores) if not store.access.index.axes & inner]
        if not self.lanes or self.axis is None:
            self._store_all(rest)
            return
        wide = [at for at in rest if self.axis in self.nest.stores[at].access.index.axes]
        if wide:
            with self._loop(self.axis):
                self._store_all(wide)
        self._store_all([at for at in rest if at not in wide])

    def _store_all(self, stores: list[int]) -> None:
        """Compute all values before any store, because a store may overwrite an operand."""
        chosen = [self.nest.stores[at] for at in stores]
        values = [(store, self.value(store.value)) for store in chosen]
        if len(values) > 1:
            values = [(store, self._named(store.value, text)) for store, text in values]
        for store, text in values:
            self.here.append(f"{self.place(store.access)} = {text.text};")
