"""Scatters, which add or write at indices, and scans, where each element depends on the previous one."""

from __future__ import annotations

import math
from collections.abc import Callable

from glassgrad.compile.c.expressions import C, written
from glassgrad.compile.c.helpers import Helpers, in_kind
from glassgrad.compile.c.kernels.solid import Solid, Words, kind, loop
from glassgrad.compile.c.words import TYPES
from glassgrad.compile.ir.graph import Instr, Var
from glassgrad.compile.llvm.loops.routes import Route
from glassgrad.compile.llvm.loops.scatter_form import scatter_of
from glassgrad.compile.llvm.module.ir import is_float, kind_of
from glassgrad.compile.plan.indexing.indices import row_strides
from glassgrad.compile.plan.kernels import Kernel

_COUNTERS = "ijklmnpqr"


class ScatterCode(Solid):
    """Additions or writes at computed indices, in NumPy's order."""

    def __init__(self, kernel: Kernel, pointer: Callable[[Var], str], words: Words) -> None:
        super().__init__(kernel, pointer, words)
        form = scatter_of(self.instr)
        assert form is not None
        self.form = form

    @staticmethod
    def takes(instr: Instr) -> bool:
        return scatter_of(instr) is not None

    def lines(self) -> list[str]:
        form, out = self.form, self.pointer(self.instr.output)
        values, *arrays = (self.start(number) for number in range(form.base, len(self.instr.inputs)))
        size = self.sizes.text(math.prod(form.shape))
        body = self._move(out, values, arrays)
        for dim in reversed(range(len(form.values))):
            body = loop(_COUNTERS[dim], self.sizes.text(form.values[dim]), body)
        if not form.base:
            return [f"memset({out}, 0, (size_t)({size}) * sizeof *{out});", *body]
        base = self.start(0)
        copy = [] if base == out else [f"memcpy({out}, {base}, (size_t)({size}) * sizeof *{out});"]
        return [*copy, *body]

    def _move(self, out: str, values: str, arrays: list[str]) -> list[str]:
        form = self.form
        lines, inside, target = [], [], []
        for number, (route, stride) in enumerate(zip(form.routes, row_strides(form.shape), strict=True)):
            text = self._index(route, arrays)
            if form.leaves(route) or route.array is not None:
                lines.append(f"const ptrdiff_t at{number} = {text};")
                text = f"at{number}"
            if form.leaves(route):
                inside.append(f"{text} >= 0 && {text} < {self.sizes.text(route.extent)}")
            if text != "0":
                plain = text if stride == 1 or text.isidentifier() else f"({text})"
                target.append(plain if stride == 1 else f"{plain} * {self.sizes.text(stride)}")
        source = self._flat(tuple(range(len(form.values))), form.values)
        place = f"{out}[{' + '.join(target) or '0'}]"
        value = C(f"{values if values.isidentifier() else f'({values})'}[{source}]")
        moved = [self._combined(place, value)]
        if inside:
            moved = [f"if ({' && '.join(inside)}) {{", f"    {moved[0]}", "}"]
        return [*lines, *moved]

    def _combined(self, place: str, value: C) -> str:
        form = self.form
        if not form.how:
            return f"{place} = {value.text};"
        if form.how == "add" and is_float(form.kind):
            return f"{place} += {value.text};"
        kinds = (form.kind, form.kind)
        return f"{place} = {written(form.how, [C(place), value], kinds, form.kind, None, self.helpers).text};"

    def _index(self, route: Route, arrays: list[str]) -> str:
        if route.array is None:
            terms = [
                _COUNTERS[dim] if step == 1 else f"{_COUNTERS[dim]} * {self.sizes.text(step)}"
                for dim, step in route.terms
                if self.form.values[dim] > 1 or step != 0
            ]
            if route.start or not terms:
                terms.append(str(route.start))
            return " + ".join(terms).replace("+ -", "- ")
        shape = self.form.index_shapes[route.array]
        array = arrays[route.array]
        named = array if array.isidentifier() else f"({array})"
        at = self._flat(tuple(-1 if dim is None else dim for dim in route.dims), shape)
        return f"{self.helpers.wrap()}((int64_t){named}[{at}], {self.sizes.text(route.extent)})"

    def _flat(self, dims: tuple[int, ...], shape: tuple[int, ...]) -> str:
        terms = [
            _COUNTERS[dim] if stride == 1 else f"{_COUNTERS[dim]} * {self.sizes.text(stride)}"
            for dim, stride, extent in zip(dims, row_strides(shape), shape, strict=True)
            if dim >= 0 and extent > 1
        ]
        return " + ".join(terms) or "0"


# --- scans ----------------------------------------------------------------------------------------------

_LOGADDEXP = """\
/* log(exp(a) + exp(b)) without overflow */
static inline TYPE gg_logaddexp_KIND(TYPE a, TYPE b)
{
    const TYPE larger = a > b || a != a ? a : b;
    return a == b ? a + (TYPE)0.69314718055994531 : larger + LOG1P(EXP(-FABS(a - b)));
}
"""


def _logaddexp(helpers: Helpers, of: str) -> str:
    def made() -> str:
        text = in_kind(_LOGADDEXP, of)
        for word, op in (("LOG1P", "log1p"), ("EXP", "exp"), ("FABS", "abs")):
            called = "fabsf" if of == "f32" else "fabs"
            text = text.replace(word + "(", (called if op == "abs" else helpers.call(op, [""], of, None)[:-2]) + "(")
        return text

    return helpers.need(f"gg_logaddexp_{of}", made)


SCANS = ("cumsum", "cumprod", "logcumsumexp", "recurrence", "cummax_index", "cummin_index")


class ScanCode(Solid):
    """Running sums, products, extremes and recurrences along an axis."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        out = instr.output
        same = all(isinstance(x, Var) and x.shape == out.shape and kind_of(x.dtype) for x in instr.inputs)
        return same and bool(out.size and out.ndim)

    def lines(self) -> list[str]:
        out, axis = self.instr.output, self.instr.params["axis"]
        rows, count, inner = math.prod(out.shape[:axis]), out.shape[axis], math.prod(out.shape[axis + 1 :])
        size = self.sizes.text
        turn = f"{size(count)} - 1 - j" if self.instr.params.get("reverse") else "j"
        body = [f"const ptrdiff_t at = (i * {size(count)} + {turn}) * {size(inner)} + k;".replace("+ j)", "+ j)")]
        first, step = self._steps(out)
        steps = [*body, "if (j == 0) {", *(f"    {line}" for line in first), "} else {"]
        steps += [*(f"    {line}" for line in step), "}", self._stored(out)]
        inside = [*self._carried(), *loop("j", size(count), steps)]
        return loop("i", size(rows), loop("k", size(inner), inside))

    @property
    def _computed(self) -> str:
        return kind(self._source(0).dtype) if self.instr.op.endswith("_index") else self.kind

    def _source(self, number: int) -> Var:
        found = self.instr.inputs[number]
        assert isinstance(found, Var)
        return found

    def _value(self, number: int) -> C:
        source, name = kind(self._source(number).dtype), self.start(number)
        text = C(f"{name if name.isidentifier() else f'({name})'}[at]")
        if source == self._computed:
            return text
        return written("cast", [text], (source,), self._computed, self._computed, self.helpers)

    def _carried(self) -> list[str]:
        index = ["int64_t place = 0;"] if self.instr.op.endswith("_index") else []
        return [f"{TYPES[self._computed]} carried = 0;", *index]

    def _steps(self, out: Var) -> tuple[list[str], list[str]]:
        """Return the lines for the first element and for each later one."""
        of, value = self._computed, self._value(0)
        pair, kinds = [C("carried"), value], (of, of)
        match self.instr.op:
            case "cumsum" | "cumprod":
                op = "add" if self.instr.op == "cumsum" else "multiply"
                return [f"carried = {value.text};"], [
                    f"carried = {written(op, pair, kinds, of, None, self.helpers).text};"
                ]
            case "logcumsumexp":
                name = _logaddexp(self.helpers, of)
                return [f"carried = {value.text};"], [f"carried = {name}(carried, {value.text});"]
            case "recurrence":
                term = self._value(1)
                product = written("multiply", [value, C("carried")], kinds, of, None, self.helpers)
                total = written("add", [product, term], kinds, of, None, self.helpers)
                return [f"carried = {term.text};"], [f"carried = {total.text};"]
        sign = ">=" if self.instr.op == "cummax_index" else "<="
        wins = f"new {sign} carried" + (" || new != new" if is_float(of) else "")
        turn = f"{self.sizes.text(out.shape[self.instr.params['axis']])} - 1 - j"
        place = turn if self.instr.params.get("reverse") else "j"
        return [f"carried = {value.text};"], [
            f"const {TYPES[of]} new = {value.text};",
            f"if ({wins}) {{",
            "    carried = new;",
            f"    place = {place};",
            "}",
        ]

    def _stored(self, out: Var) -> str:
        return f"{self.pointer(out)}[at] = {'place' if self.instr.op.endswith('_index') else 'carried'};"
