"""Loops over time: a product of the state with the weights and the formulas of the cell, step by step.

Operands and results are those of ``lstm_scan`` and its relatives in `ops.recurrent_scan`; the formulas are those of
`ops.recurrent_loops`, whose NumPy loops define the results.
"""

from __future__ import annotations

from glassgrad.compile.c.kernels.products import packed_functions, strips_size
from glassgrad.compile.c.kernels.solid import Solid, loop
from glassgrad.compile.ir.graph import Instr, Var

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_LSTM, _GRU = ("input", "forget", "cell", "output"), ("reset", "update", "new", "inner")
_KEPT = {"lstm": ("cells", "gates"), "gru": ("gates",), "rnn": ()}


class RecurrentCode(Solid):
    """A forward loop over time."""

    @staticmethod
    def takes(instr: Instr) -> bool:
        sized = all(isinstance(one, Var) and one.size for one in instr.inputs)
        out = instr.outputs[0].dtype
        return sized and out.kind == "f" and out.itemsize >= 4

    def lines(self) -> list[str]:
        """Return the body: the weights, read as rows of terms, then the steps."""
        self.cell = self.instr.op.split("_")[0]
        places = self._places()
        arrays = (*self.instr.inputs, *self.instr.outputs)
        names = [self.start(at) for at in range(len(self.instr.inputs))]
        names += [self.pointer(out) for out in self.instr.outputs]
        self.names = dict(zip(places, names, strict=True))
        y = arrays[places.index("y")]
        assert isinstance(y, Var)
        *lead, self.hidden = y.shape
        first = self.instr.params["batch_first"]
        self.steps, self.batch = (lead[1], lead[0]) if first else (lead[0], lead[1])
        self.gates = GATES[self.cell]
        self.wide = self.gates * self.hidden
        return self._body()

    def _places(self) -> tuple[str, ...]:
        first = ("h0", "c0") if self.cell == "lstm" else ("h0",)
        last = ("hn", "cn") if self.cell == "lstm" else ("hn",)
        bias = ("bias",) if len(self.instr.inputs) > 2 + len(first) else ()
        return ("a", *first, "w", *bias, "y", *last, *_KEPT[self.cell])

    def at(self, name: str, gate: int | None = None) -> str:
        """Return the element of an array at this step, row and unit; of one gate, if it has several."""
        if name in {"h0", "c0", "hn", "cn", "dh0", "dc0"}:
            return f"{self._pointer(name)}[r * {self._size(self.hidden)} + u]"
        width = {"a": self.gates, "dhidden": 3, "gates": 4}.get(name, 1)
        row = "r * at_row + t * at_step" if self.instr.params["batch_first"] else "t * at_step + r * at_row"
        shift = f" + {gate} * {self._size(self.hidden)}" if gate else ""
        return f"{self._pointer(name)}[({row}) * {self._size(width * self.hidden)}{shift} + u]"

    def _pointer(self, name: str) -> str:
        text = self.names[name]
        return text if text.isidentifier() else f"({text})"

    def _size(self, number: int) -> str:
        text = self.sizes.text(number)
        return f"({text})" if "*" in text else text

    def _distances(self) -> str:
        far = (1, self.steps) if self.instr.params["batch_first"] else (self.batch, 1)
        return f"const ptrdiff_t at_step = {far[0]}, at_row = {far[1]};"

    def _turn(self, reverse: bool) -> str:
        return f"const ptrdiff_t t = {f'{self._size(self.steps)} - 1 - turn' if reverse else 'turn'};"

    def _each(self, body: list[str]) -> list[str]:
        return loop("r", self._size(self.batch), loop("u", self._size(self.hidden), body))

    def product(self, gate: int = 0) -> str:
        """Return the product for a gate at this row and unit."""
        shift = f"{gate} * {self._size(self.hidden)} + " if gate else ""
        return f"from_h[r * {self._size(self.wide)} + {shift}u]"

    def _call(self, name: str, argument: str) -> str:
        return self.helpers.call(name, [argument], self.kind, None)

    def _body(self) -> list[str]:
        wide, hidden, batch = self._size(self.wide), self._size(self.hidden), self._size(self.batch)
        strips = self.room("strips", self.kind, strips_size(self.wide, self.hidden))
        self.room("from_h", self.kind, self.batch * self.wide)
        name, pack = packed_functions(self.helpers, self.kind)
        packed = f"{pack}({wide}, {hidden}, {self.names['w']}, 1, {hidden}, {strips});"
        begin = self._each([f"{self.at('hn')} = {self.at('h0')};"])
        if self.cell == "lstm":
            begin = self._each([f"{self.at('hn')} = {self.at('h0')};", f"{self.at('cn')} = {self.at('c0')};"])
        product = (
            f"{name}(false, {batch}, {wide}, {hidden}, {self.names['hn']}, {hidden}, 1, {strips}, from_h, {wide});"
        )
        steps = [self._turn(self.instr.params["reverse"]), product, *self._each(self._cell())]
        return [self._distances(), packed, *begin, *loop("turn", self._size(self.steps), steps)]

    def _cell(self) -> list[str]:
        kind = "float" if self.kind == "f32" else "double"
        if self.cell == "lstm":
            gates = [
                f"const {kind} {gate} = "
                + self._call("tanh" if gate == "cell" else "sigmoid", f"{self.at('a', at)} + {self.product(at)}")
                + ";"
                for at, gate in enumerate(_LSTM)
            ]
            return [
                *gates,
                f"const {kind} memory = forget * {self.at('cn')} + input * cell;",
                f"const {kind} state = output * {self._call('tanh', 'memory')};",
                *self._stored({"cells": "memory", "cn": "memory"}, _LSTM),
            ]
        if self.cell == "gru":
            return self._gru(kind)
        total = f"{self.at('a')} + {self.product()}"
        if self.instr.params.get("rectified"):
            state = [f"const {kind} total = {total};", f"const {kind} state = total < 0 ? 0 : total;"]
        else:
            state = [f"const {kind} state = {self._call('tanh', total)};"]
        return [*state, *self._stored({})]

    def _stored(self, values: dict[str, str], gates: tuple[str, ...] = ()) -> list[str]:
        """Return the lines that store the gates, other values and the state."""
        kept = [f"{self.at('gates', number)} = {gate};" for number, gate in enumerate(gates)]
        values = {**values, "y": "state", "hn": "state"}
        return [*kept, *(f"{self.at(name)} = {value};" for name, value in values.items())]

    def _gru(self, kind: str) -> list[str]:
        biases = [f" + {self._pointer('bias')}[{at} * {self._size(self.hidden)} + u]" for at in range(3)]
        from_h = [self.product(at) + (biases[at] if "bias" in self.names else "") for at in range(3)]
        sums = [f"{self.at('a', at)} + ({from_h[at]})" for at in range(2)]
        last = f"reset * inner + {self.at('a', 2)}"
        return [
            f"const {kind} inner = {from_h[2]};",
            f"const {kind} reset = {self._call('sigmoid', sums[0])};",
            f"const {kind} update = {self._call('sigmoid', sums[1])};",
            f"const {kind} new = {self._call('tanh', last)};",
            f"const {kind} state = update * ({self.at('hn')} - new) + new;",
            *self._stored({}, _GRU),
        ]


class RecurrentBackCode(RecurrentCode):
    """A backward loop over time."""

    def _places(self) -> tuple[str, ...]:
        first = ("h0", "c0") if self.cell == "lstm" else ("h0",)
        states = ("dh0", "dc0") if self.cell == "lstm" else ("dh0",)
        given = zip(("dy", "hn", "cn"), self.instr.params["given"], strict=False)
        hidden = ("dhidden",) if self.cell == "gru" else ()
        there = tuple(name for name, there in given if there)
        return (*there, "y", *_KEPT[self.cell], *first, "w", "a", *hidden, *states)

    def _body(self) -> list[str]:
        """From the last step to the first: `from_h` holds what the later step passes back to the state."""
        wide, hidden, batch = self._size(self.wide), self._size(self.hidden), self._size(self.batch)
        self.room("from_h", self.kind, self.batch * self.hidden)
        self.room("later", self.kind, self.batch * self.wide)
        strips = self.room("strips", self.kind, strips_size(self.hidden, self.wide))
        name, pack = packed_functions(self.helpers, self.kind)
        packed = f"{pack}({hidden}, {wide}, {self.names['w']}, {hidden}, 1, {strips});"
        at = f"r * {hidden} + u"
        start = [f"from_h[{at}] = {self.at('hn') if 'hn' in self.names else 0};"]
        if self.cell == "lstm":
            start.append(f"{self.at('dc0')} = {self.at('cn') if 'cn' in self.names else 0};")
        product = f"{name}(false, {batch}, {hidden}, {wide}, later, {wide}, 1, {strips}, from_h, {hidden});"
        through = self._each([f"from_h[{at}] += {self.at('dh0')};"]) if self.cell == "gru" else []
        before = self._before()
        steps = [self._turn(not self.instr.params["reverse"]), *before, *self._each(self._cell()), product, *through]
        end = self._each([f"{self.at('dh0')} = from_h[{at}];"])
        return [self._distances(), packed, *self._each(start), *loop("turn", self._size(self.steps), steps), *end]

    def _before(self) -> list[str]:
        """Return the line that names the step before this one, in the order of reading."""
        if self.cell == "rnn":
            return []
        step = "t + 1" if self.instr.params["reverse"] else "t - 1"
        first = f"turn == {self._size(self.steps)} - 1"
        return [f"const bool first = {first};", f"const ptrdiff_t earlier = first ? 0 : {step};"]

    def _earlier(self, name: str, start: str) -> str:
        text = self.at(name).replace("t * at_step", "earlier * at_step")
        return f"first ? {self.at(start)} : {text}"

    def _cell(self) -> list[str]:
        kind = "float" if self.kind == "f32" else "double"
        dy = f" + {self.at('dy')}" if "dy" in self.names else ""
        names = {"lstm": _LSTM, "gru": _GRU}.get(self.cell, ())
        head = [f"const {kind} dh = from_h[r * {self._size(self.hidden)} + u]{dy};"]
        head += [f"const {kind} {gate} = {self.at('gates', at)};" for at, gate in enumerate(names)]
        if self.cell == "lstm":
            slopes = (
                "dc * cell * (input * (1 - input))",
                "dc * before * (forget * (1 - forget))",
                "dc * input * (1 - cell * cell)",
                "dh * squashed * (output * (1 - output))",
            )
            return [
                *head,
                f"const {kind} squashed = {self._call('tanh', self.at('cells'))};",
                f"const {kind} before = {self._earlier('cells', 'c0')};",
                f"const {kind} dc = dh * output * (1 - squashed * squashed) + {self.at('dc0')};",
                f"{self.at('dc0')} = dc * forget;",
                *self._passed(slopes),
            ]
        if self.cell == "gru":
            return [
                *head,
                f"const {kind} before = {self._earlier('y', 'h0')};",
                f"const {kind} dnew = dh * (1 - update) * (1 - new * new);",
                f"const {kind} dupdate = dh * (before - new) * (update * (1 - update));",
                f"const {kind} dreset = dnew * inner * (reset * (1 - reset));",
                f"{self.at('dh0')} = dh * update;",
                *self._passed(("dreset", "dupdate", "dnew"), ("dreset", "dupdate", "dnew * reset")),
            ]
        slope = f"{self.at('y')} > 0 ? dh : 0" if self.instr.params.get("rectified") else ""
        return [*head, *self._passed((slope or f"dh * (1 - {self.at('y')} * {self.at('y')})",))]

    def _passed(self, slopes: tuple[str, ...], hidden: tuple[str, ...] = ()) -> list[str]:
        """Return the lines that store the cotangents of the gates, for this step and for the product."""
        lines = []
        for gate, slope in enumerate(slopes):
            shift = f"{gate} * {self._size(self.hidden)} + " if gate else ""
            later = f"later[r * {self._size(self.wide)} + {shift}u]"
            lines.append(f"{self.at('a', gate)} = {slope};")
            if hidden:
                lines.append(f"{self.at('dhidden', gate)} = {hidden[gate]};")
            lines.append(f"{later} = {hidden[gate] if hidden else self.at('a', gate)};")
        return lines
