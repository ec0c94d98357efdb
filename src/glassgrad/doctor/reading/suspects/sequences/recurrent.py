"""Suspects about recurrent layers: axes, first and final states, steps, packing, cells in a loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import object_of, target_of, within
from glassgrad.doctor.reading.program import (
    FUNCTIONS,
    LOOPS,
    Function,
    Loop,
    Program,
    argument,
    constant,
    is_given,
    number,
)
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import functions, text
from glassgrad.doctor.reading.suspects.sequences.parts import (
    CELLS,
    Run,
    dotted_in,
    firsts,
    flag,
    inside,
    pick,
    picks,
    runs,
    says,
    stored_in,
    turns,
)
from glassgrad.doctor.reading.values import axis_of, layer, op

_PADS = r"pad_sequence|padding_idx|pad_idx|\bPAD\b|<pad>|PAD_IDX|pad_token"


# --- final states ---


def _hidden_uses(one: Run) -> Iterator[ast.expr]:
    for node in ast.walk(one.around):
        if not isinstance(node, ast.Name | ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        if text(node) in one.hidden and node.lineno >= one.call.lineno:
            yield node


@suspects_each("final states joined by a view", runs)
def _joined(program: Program, one: Run) -> Iterator[Spot]:
    """Find `h.view(-1, 2 * n)` of the final states of several layers or directions."""
    for node in _hidden_uses(one) if one.both or one.stacked else ():
        outer = program.parents.get(node)
        call = program.parents.get(outer) if isinstance(outer, ast.Attribute) else outer
        if not isinstance(call, ast.Call) or program.called(call) not in {"view", "reshape", "flatten"}:
            continue
        sizes = call.args if isinstance(outer, ast.Attribute) else call.args[1:]
        if len(sizes) <= 2:
            yield look_at(call, one.made)


@suspects_each("one of several final states", runs)
def _one_state(program: Program, one: Run) -> Iterator[Spot]:
    """Find `h[0]` or `h[-1]` as the only use of the final states of several layers or directions."""
    found = [outer for node in _hidden_uses(one) if isinstance(outer := program.parents.get(node), ast.Subscript)]
    kinds = {pick(node) for node in found}
    uses = len(list(_hidden_uses(one)))
    for node in found:
        axis, index = pick(node) or (1, 0)
        if axis != 0 or not len(kinds) == 1 == len(found) == uses:
            continue
        if (one.both and index in {0, -1}) or (one.stacked and index == 0):
            yield look_at(node, one.made, layer=shown(one.made))


@suspects_each("last step of both directions", runs)
def _last_of_both(program: Program, one: Run) -> Iterator[Spot]:
    """Find `outputs[:, -1]` of a layer that reads in both directions."""
    yield from (look_at(node, one.made) for node, _, index in picks(program, one) if one.both and index == -1)


# --- axes ---


@suspects_each("recurrent layer along the batch", runs)
def _along_batch(program: Program, one: Run) -> object:
    """Find a layer that takes the sequence first, in a script that never exchanges axes or reads axis 1."""
    if one.batch_first is not False or says(program, r"pad_sequence\(|pack_padded|\.unsqueeze\(1\)"):
        return False
    owner = program.owner(one.call)
    stepwise = program.loops(one.call) or "unsqueeze(0)" in text(program.function(one.call) or one.call)
    plain = not turns(owner.node if owner is not None else one.around) and not stepwise
    said = text(one.around)
    reads = re.search(r"\[:, -1|\.(size|shape)[\[(]0[\])], |mean\((dim=)?1|sum\((dim=)?1|\.view\(len\(", said)
    batch = re.search(r"\bbatch|\bb\b|\.size\(0\)|\.shape\[0\]|\[:, -1|dim=1|\(1\)", said)
    return plain and (reads or batch or not re.search(r"\[-1\]|\bh\w*\b", said)) and look_at(one.made, one.call)


@suspects_each("batch-first outputs read by example", runs)
def _by_example(program: Program, one: Run) -> Iterator[Spot]:
    """Find `outputs[-1]` of a layer with the batch first."""
    for node, axis, index in picks(program, one):
        if one.batch_first and axis == 0 and index in {-1, 0} and not _single(program, one):
            yield look_at(node, one.made)
    for pooled in inside(program, one.around, ast.Call) if one.batch_first and not _single(program, one) else ():
        name, operand = op(program, pooled)
        if name not in {"mean", "sum", "amax", "max"} or operand is None:
            continue
        if text(operand) in one.outputs and number(axis_of(program, pooled)) == 0:
            yield look_at(pooled, one.made)


def _single(program: Program, one: Run) -> bool:
    """Tell whether the batch of a call is one example: `x.unsqueeze(0)` or `x[None]`."""
    said = text(one.around)
    return bool(re.search(r"unsqueeze\(0\)|\[None|view\(1, |reshape\(1, |transpose\(0, 1\)|permute\(1, 0", said))


@suspects_each("turned before a batch-first layer", runs)
def _turned(program: Program, one: Run) -> Iterator[Spot]:
    """Find `x.transpose(0, 1)` or `x.permute(1, 0, 2)` in front of a layer with the batch first."""
    given = one.call.args[0]
    node = program.value_of(given) or given
    said = text(node)
    stacked = program.called(program.written(object_of(node))) == "stack"  # of steps, which come first
    if (
        one.batch_first
        and not stacked
        and re.search(r"\.(permute\(1, 0, 2\)|(transpose|swapaxes)\((0, 1|1, 0)\))$", said)
    ):
        yield look_at(node, one.made)


@suspects_each("stacked along the first axis", ast.Call)
def _stacked(program: Program, call: ast.Call) -> object:
    """Find `torch.stack(outputs)` of steps `x[:, t]`, which puts the steps before the batch."""
    function = program.function(call)
    if function is None or last(program.names.full(call.func)) != "stack" or len(call.args) != 1 or call.keywords:
        return False
    name, said = text(call.args[0]), text(function)
    fills = [loop for loop in inside(program, function, *LOOPS) if f"{name}.append(" in (body := text(loop))]
    fills = [loop for loop in fills if re.search(r"\[:, [a-z]\w*[\]]", body)]
    turned = re.search(r"transpose\((0, 1|1, 0)|permute\(1, 0|swapaxes\(0, 1", said)
    return fills and not turned


# --- steps and padding ---


@suspects("last step may be padding")
def _last_is_padding(program: Program) -> Iterator[Spot]:
    """Find `outputs[:, -1]` or `outputs[-1]` in a script that pads and never packs, or of what was unpacked."""
    if says(program, "pad_packed_sequence"):
        yield from _last_of_unpacked(program)
    if not says(program, _PADS) or says(program, r"pack_padded|pack_sequence|pad_left|padding_side"):
        return
    for one in runs(program):
        for node, axis, index in picks(program, one):
            if index == -1 and axis == (1 if one.batch_first else 0):
                yield look_at(node)
        for state in _hidden_uses(one) if not says(program, r"lengths?\b.*gather|gather\(.*len") else ():
            outer = program.parents.get(state)
            if isinstance(outer, ast.Subscript) and constant(outer.slice) == -1 and says(program, r"pad_sequence\("):
                yield look_at(outer)


def _last_of_unpacked(program: Program) -> Iterator[Spot]:
    """Find `outputs[:, -1]` of `pad_packed_sequence`, which has numbers there for the longest sequences only."""
    for node in program.every(ast.Subscript):
        bound = program.bound(node.value)
        made = bound.value if bound is not None and bound.item in {None, 0} else None
        made = made.value if isinstance(made, ast.Subscript) and constant(made.slice) == 0 else made
        if not isinstance(made, ast.Call) or program.called(made) != "pad_packed_sequence":
            continue
        if pick(node) == (int(flag(program, made, "batch_first", 1) is True), -1):
            yield look_at(node, made)


@suspects("packing with the time first")
def _packing(program: Program) -> Iterator[Spot]:
    """Find packing and unpacking without batch_first beside layers with the batch first."""
    axes = {one.batch_first for one in runs(program)}
    for name in ("pack_padded_sequence", "pad_packed_sequence"):
        for call in [*program.calls_of(name), *program.calls_of(f".{name}")]:
            around = text(program.around(call))
            first = flag(program, call, "batch_first", 2 if name.startswith("pack") else 1)
            turned = re.search(r"transpose\((0, 1|1, 0)|permute\(1, 0", around)
            if first is False and axes == {True} and not turned:
                yield look_at(call)


@suspects("padded with the time first")
def _padding(program: Program) -> Iterator[Spot]:
    """Find pad_sequence without batch_first in a script whose layers all take the batch first."""
    known = firsts(program)
    for call in [*program.calls_of("pad_sequence"), *program.calls_of(".pad_sequence")]:
        outer = program.parents.get(call)
        turned = isinstance(outer, ast.Attribute) and outer.attr in {"transpose", "t", "T", "permute"}
        if known == {True} and flag(program, call, "batch_first", 1) is False and not turned:
            yield look_at(call)


@suspects_each("sorted by length without the rest", ast.Call)
def _sorted(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find sequences sorted by their lengths, where the order is used once and never undone."""
    function = program.function(call)
    sorts = program.called(call) in {"sort", "argsort"} and "len" in text(call)
    if function is None or not sorts or "descending=True" not in text(call):
        return
    statement = program.statement(call)
    target = target_of(statement)
    order = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target
    if not isinstance(order, ast.Name):
        return
    uses = [one for one in within(function, ast.Name) if one.id == order.id]
    reads = [one for one in uses if isinstance(one.ctx, ast.Load)]
    indexed = [one for one in reads if isinstance(program.parents.get(one), ast.Subscript)]
    wide = program.called(call) == "argsort"
    late = [one for one in runs(program) if one.around is function]
    for one in indexed if late and len(indexed) == len(reads) else ():
        if one.lineno > late[0].call.lineno:
            yield spot(one, call, text=shown(program.statement(one)), order=order.id)
    if reads and len(indexed) == len(reads) <= (2 if wide else 1):
        yield look_at(call, *reads, order=order.id)


@suspects_each("lengths of padded rows", ast.ListComp)
def _lengths(program: Program, node: ast.ListComp) -> object:
    """Find `[len(row) for row in padded]`, where all rows have the same length."""
    if not isinstance(node.elt, ast.Call):
        return False
    source = node.generators[0].iter
    bound = program.bound(source)
    padded = bound is not None and bound.value is not None and "pad_sequence(" in text(bound.value)
    named = isinstance(source, ast.Name) and source.id.startswith("padded")
    return text(node.elt.func) == "len" and (padded or named)


@suspects_each("sequence of a single step", runs)
def _single_step(program: Program, one: Run) -> object:
    """Find `x.unsqueeze(1)` in front of a layer with the batch first, which gets one step of many features."""
    if len(one.call.args) > 1 or one.call.keywords or program.loops(one.call) or one.batch_first is None:
        return False
    given = one.call.args[0]
    node = program.value_of(given) or given
    batch = r"(\w+\.size\(0\)|\w+\.shape\[0\]|len\(\w+\)|-1|batch\w*|b|n)"
    first = rf"unsqueeze\((dim=)?1\)$|(view|reshape)\({batch}, 1, |\[:, None(, :)?\]$"
    odd = re.search(first if one.batch_first else r"unsqueeze\((dim=)?0\)$|(view|reshape)\(1, ", text(node))
    return odd and look_at(node, one.made)


# --- states in loops ---


def _steps(program: Program) -> Iterator[tuple[ast.Call, Loop, list[ast.expr]]]:
    """Yield the calls of recurrent layers and cells in a loop, with the loop and the expressions of the first state."""
    for call in program.calls:
        loops = program.loops(call)
        held = layer(program, call.func) if loops else None
        known = held is not None and held.owner is None and held.name in CELLS | {"RNN", "LSTM", "GRU"}
        if not known or not call.args:
            continue
        state = argument(call, "hx", 1)
        yield call, loops[0], list(state.elts) if isinstance(state, ast.Tuple) else [state] if state is not None else []


@suspects_rows("each step from the same state", _steps)
def _same_state(program: Program, call: ast.Call, loop: Loop, state: list[ast.expr]) -> Iterator[Spot]:
    """Find a cell in a loop whose state argument never changes in the loop."""
    names = dotted_in(*state)
    outer = [one for one in program.loops(call) if text(getattr(one, "target", loop)) != "epoch"]
    variables = [one for one in state if isinstance(one, ast.Name | ast.Attribute)]
    if variables and len(variables) == len(state) and not names & stored_in(*outer[:1]):
        steps = dotted_in(loop.target) if isinstance(loop, ast.For) else frozenset()
        if steps & dotted_in(*call.args[:1]):
            yield look_at(call, state=shown(state[0]))


@suspects("state thrown away in a loop")
def _thrown(program: Program) -> Iterator[Spot]:
    """Find a recurrent layer in a loop over steps that gets no state, and a model whose new state nothing keeps."""
    yield from (look_at(call) for call, loop, state in _steps(program) if _is_stateless(call, loop, state))
    for node in program.every(ast.Assign):
        target, call = node.targets[0], node.value
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(call, ast.Call):
            continue
        states = [one.id for one in call.args[1:] if isinstance(one, ast.Name) and _STATE.fullmatch(one.id)]
        kept, loops = text(target.elts[1]), program.loops(node)
        begins = program.bindings(program.scope(node), states[0]) if states and loops else []
        first = [one.value for one in begins if _is_none(one.value)]
        read = len(re.findall(rf"\b{re.escape(kept)}\b", text(program.around(node)))) > 1
        if len(first) == len(begins) == 1 and (kept.startswith("_") or not read):
            yield look_at(node)


_STATE = re.compile(r"h|hx|hc|h_?t|(\w+_)?(hidden|state|states|memory|carry)(_\w+)?")


def _is_none(node: ast.expr | None) -> bool:
    """Tell whether an expression is None."""
    return isinstance(node, ast.Constant) and node.value is None


def _is_stateless(call: ast.Call, loop: Loop, state: list[ast.expr]) -> bool:
    steps = dotted_in(loop.target) if isinstance(loop, ast.For) else frozenset()
    fed = dotted_in(*call.args[:1]) & (steps | stored_in(loop))
    single = "unsqueeze" in text(call) or bool(steps & dotted_in(*call.args[:1]))
    counted = isinstance(loop, ast.For) and "range(" in text(loop.iter)
    return not state and bool(fed) and single and counted


@suspects_rows("state set back at each step", _steps)
def _set_back(program: Program, call: ast.Call, loop: Loop, state: list[ast.expr]) -> Iterator[Spot]:
    """Find `h = torch.zeros(...)` within the loop over the steps of a sequence."""
    names = dotted_in(*state)
    steps = dotted_in(loop.target) if isinstance(loop, ast.For) else frozenset()
    for node in within(loop, ast.Assign) if steps & dotted_in(*call.args[:1]) else ():
        if not node.lineno < call.lineno:
            continue
        if names & stored_in(*node.targets) and re.search(r"zeros|init_hidden|init_state|None$", text(node.value)):
            yield look_at(node, call)


@suspects_rows("state detached at each step", _steps)
def _detached(program: Program, call: ast.Call, loop: Loop, state: list[ast.expr]) -> Iterator[Spot]:
    """Find `h.detach()` within the loop over the steps of a sequence."""
    names, said = dotted_in(*state), text(loop)
    updates = re.search(r"backward\(|\.step\(", said) or re.search(r"no_grad", text(program.function(call) or loop))
    for node in within(loop, ast.Call) if not updates else ():
        if program.called(node) not in {"detach", "detach_"}:
            continue
        if isinstance(node.func, ast.Attribute) and names & dotted_in(node.func.value):
            yield spot(node, call, text=shown(program.statement(node)))


@suspects("state of another batch")
def _of_another(program: Program) -> Iterator[Spot]:
    """Find a model or layer that begins with the final state of the batch before."""
    for call in program.calls:
        statement = program.statement(call)
        target = target_of(statement)
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(statement, ast.Assign):
            continue
        if statement.value is not call or len(call.args) < 2:
            continue
        state = target.elts[1]
        kept = {text(one) for one in (state.elts if isinstance(state, ast.Tuple) else [state])}
        given = dotted_in(call.args[-1])
        if not kept <= given or "forward" in program.called(call):
            continue
        fields = all(one.startswith("self.") for one in kept) and not program.loops(call)
        if (fields and not _starts_anew(program, statement, kept)) or _carried(program, call, statement, kept):
            yield look_at(statement)
    yield from _kept_in_fields(program)


def _kept_in_fields(program: Program) -> Iterator[Spot]:
    """Find `out, h = self.rnn(x, self.h); self.h = h.detach()` in a forward pass that never begins anew."""
    for one in runs(program):
        fields = {name for name in dotted_in(*one.call.args[1:]) if name.startswith("self.")}
        results = {text.removesuffix("[0]") for text in one.hidden}
        for node in inside(program, one.around, ast.Assign):
            if not node.lineno > one.call.lineno or not fields & stored_in(*node.targets):
                continue
            if results & dotted_in(node.value) and not _starts_anew(program, program.statement(one.call), fields):
                yield spot(one.call, node, text=shown(node))


def _starts_anew(program: Program, statement: ast.stmt, kept: set[str]) -> bool:
    function = program.function(statement)
    before = within(function, ast.Assign) if function is not None else []
    fresh = [one for one in before if one.lineno < statement.lineno]
    return any(kept & stored_in(*one.targets) for one in fresh)


def _carried(program: Program, call: ast.Call, statement: ast.stmt, kept: set[str]) -> bool:
    """Tell whether a loop with a backward pass carries a state from one batch to the next."""
    loops = program.loops(call)
    if not loops or "backward(" not in text(loops[0]):
        return False
    fresh = [one for one in within(loops[0], ast.Assign) if one.lineno < statement.lineno]
    anew = any(kept & stored_in(*one.targets) and not kept & dotted_in(one.value) for one in fresh)
    if re.search(r"(?i)chunk|bptt|stream", text(program.around(call))):
        return False  # the parts of one long sequence, one after the other
    mixed = says(program, r"shuffle=True|randperm|permutation\(|shuffle\(|randint|random|sample\(")
    return not anew and layer(program, call.func) is not None and mixed


@suspects_each("h and c exchanged", ast.Call)
def _exchanged(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `c, h = cell(...)`, `out, (c, h) = lstm(x)` or an argument `(c, h)`."""
    held = layer(program, call.func)
    if held is None or held.name not in {"LSTM", "LSTMCell"}:
        return
    statement = program.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    if held.name == "LSTM" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[1]
    for pair in (target, argument(call, "hx", 1)):
        if isinstance(pair, ast.Tuple) and len(pair.elts) == 2:
            first, second = (last(f".{text(one)}").lstrip("_") for one in pair.elts)
            if re.match(r"c([xnt0-9_]|ell|$)", first) and re.match(r"h([xnt0-9_]|id|$)", second):
                yield spot(call, text=shown(statement))


@suspects_each("state that no layer reads", runs)
def _unread(program: Program, one: Run) -> Iterator[Spot]:
    """Find a forward pass with a state among its parameters, and a recurrent layer that gets none."""
    given = [arg.arg for arg in one.around.args.args] if isinstance(one.around, FUNCTIONS) else []
    states = [name for name in given if re.fullmatch(r"h|hx|hidden\w*|state\w*|prev_state|h_?0", name)]
    used = dotted_in(*one.around.body) if isinstance(one.around, FUNCTIONS) else frozenset()
    alone = len(one.call.args) == 1 and not one.call.keywords
    written = stored_in(program.statement(one.call))
    for name in states if alone else ():
        reads = len(re.findall(rf"\b{name}\b", text(one.around))) - 1 - (1 if name in written else 0)
        if name not in used - written or (name in written and reads <= 1):
            yield look_at(one.call, state=name)


@suspects_each("dropout of a single layer", runs)
def _dropout(program: Program, one: Run) -> object:
    """Find dropout in a recurrent layer with one layer, where it does nothing."""
    given = argument(one.made, "dropout", 5)
    odd = given is not None and number(given) != 0 and not one.stacked and not is_given(one.made, "num_layers", 2)
    return odd and look_at(one.made)


@suspects("both directions predict what follows")
def _sees_next(program: Program) -> Iterator[Spot]:
    """Find a layer of both directions whose outputs at all steps are compared with the next tokens."""
    shifted = says(program, r"\[:, 1:\]|\[1:\]|\[:, :-1\]|\[\w+ \+ 1:|next_token|\[1:, ")
    for one in runs(program):
        whole = one.outputs and not list(picks(program, one)) and not says(program, r"tags?\b|ner\b|\blabels?_?idx")
        owner = program.owner(one.call)
        makes = owner is not None and re.search(r"LM$|Lang|Char|Decoder|Generat|Forecast|Next", owner.node.name)
        encodes = owner is not None and "ncod" in owner.node.name
        if one.both and whole and not encodes and (shifted or makes):
            yield look_at(one.made, one.call)


# --- cells and decoders written by hand ---


@suspects_each("gate with the other activation", functions)
def _gates(program: Program, function: Function) -> Iterator[Spot]:
    """Find a candidate by sigmoid, or a gate by tanh, in a cell of one's own."""
    gates: dict[str, tuple[str, ast.Assign]] = {}
    for node in inside(program, function, ast.Assign):
        if isinstance(node.value, ast.Call):
            pairs = [(node.targets[0], node.value)]
            name = op(program, pairs[0][1])[0]
            if name in {"sigmoid", "tanh"}:
                gates[text(pairs[0][0])] = name, node
    if sum(name == "sigmoid" for name, _ in gates.values()) < 2:
        return
    for said, (name, node) in gates.items():
        candidate = re.match(r"(g|g_?t|cand\w*|\w*tilde\w*|n|n_?t|new\w*|h_?hat|c_?hat|h_new|c_new)$", said)
        gate = re.match(r"(i|f|o|z|r|u)(_?t|_?gate|_g)?$|(in|input|forget|output|reset|update)(_?gate)?$", said)
        if (candidate and name == "sigmoid") or (gate and name == "tanh"):
            yield look_at(node)


@suspects_each("decoder without the state of its encoder", ast.Call)
def _no_bridge(program: Program, one: ast.Call) -> object:
    """Find a decoder that begins from zeros although an encoder has read the source."""
    said = text(one.func)
    function = program.function(one)
    if not re.search(r"(^|\.)dec(oder)?(_?(rnn|lstm|gru))?$", said) or function is None:
        return False
    held = layer(program, one.func)
    encodes = re.search(r"\benc(oder)?(_?(rnn|lstm|gru))?\(", text(function))
    if held is None or held.name not in {"RNN", "LSTM", "GRU"} or not encodes or len(one.args) != 1:
        return False
    return not one.keywords and not re.search(r"cat\(|context", text(function))
