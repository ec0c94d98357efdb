"""Suspects about steps and cells written by hand: what a loop over time reads, keeps and forgets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.nodes import is_op, within
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import text
from glassgrad.doctor.reading.suspects.sequences.parts import Run, dotted_in, inside, runs, says, stored_in
from glassgrad.doctor.reading.values import layer, losses

_STATE = re.compile(r"(h|hidden|state|hx|s|h_?t|h_?prev|prev_h\w*|hidden_state|h_state|c|cell)$")
_CHANGED = r"(\.\w+_\(|\[.*\] = )"
_FRESH = re.compile(r"zeros(_like)?\(|init_hidden|init_state|initial_state")


def _time_loops(program: Program) -> Iterator[tuple[ast.For, frozenset[str]]]:
    """Yield the loops over the steps of a sequence without training in them, each with its variables."""
    for loop in program.every(ast.For):
        said = text(loop)
        steps = dotted_in(loop.target)
        reads = any(re.search(rf"\[(:, )?{re.escape(step)}(, :)?[\],:]", said) for step in steps)
        rows = re.search(r"unbind|\.split\(1|transpose\(0, 1\)|permute\(1, 0|swapaxes\(0, 1", text(loop.iter))
        counts = bool(rows) or re.search(r"range\(", text(loop.iter)) is not None
        if (reads or rows) and counts and not re.search(r"backward\(|zero_grad|\.step\(\)", said):
            yield loop, steps


# --- what a step begins from ---


@suspects_rows("state of a hand-made cell set back", _time_loops)
def _set_back(program: Program, loop: ast.For, _: frozenset[str]) -> Iterator[Spot]:
    """Find `h = torch.zeros(...)` in a loop over steps that updates h afterwards."""
    rows = within(loop, ast.Assign)
    for node in rows:
        names = stored_in(*node.targets)
        later = (one for one in rows if one.lineno > node.lineno and names & stored_in(*one.targets))
        if not _FRESH.search(text(node.value)) or not any(names & dotted_in(one.value) for one in later):
            continue
        if isinstance(program.parents.get(node), ast.For):
            yield look_at(node)


@suspects_rows("state of a hand-made cell never updated", _time_loops)
def _never_updated(program: Program, loop: ast.For, steps: frozenset[str]) -> Iterator[Spot]:
    """Find `new = f(x[:, t], h)` in a loop over steps that never assigns h."""
    stored = stored_in(loop)
    for node in within(loop, ast.Assign):
        states = {name for name in dotted_in(node.value) if _STATE.match(name)}
        reads = steps & dotted_in(node.value) and isinstance(node.value, ast.Call)
        target = text(node.targets[0])
        if not reads or not states or states & stored or not re.search(r"h|state|new|c_|out", target):
            continue
        if not re.search(r"att|score|energ|context|encoder_h", text(node)):
            yield look_at(node, state=min(states))


@suspects_rows("gradient cut between steps", _time_loops)
def _cut(program: Program, loop: ast.For, _: frozenset[str]) -> Iterator[Spot]:
    """Find `h.detach()` in a loop over steps that updates h."""
    stored = stored_in(loop)
    function = program.function(loop)
    if function is None or "no_grad" in text(function):
        return
    for node in within(loop, ast.Call):
        if program.called(node) == "detach" and isinstance(node.func, ast.Attribute):
            name = text(node.func.value)
            if name in stored and _STATE.match(name.removeprefix("self.")):
                yield spot(node, text=shown(program.statement(node)))


@suspects("state of nothing in a loop")
def _none(program: Program) -> Iterator[Spot]:
    """Find `out, h = model(token, None)` or `out, _ = model(token)` for one token after the other."""
    recurrent = says(program, r"nn\.(GRU|LSTM|RNN)\(")
    for call in program.calls if recurrent else ():
        loops, statement = program.loops(call), program.statement(call)
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
        if not loops or not call.args or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            continue
        said, state = text(loops[0]), text(target.elts[1])
        empty = (len(call.args) == 1 and not call.keywords) or text(call.args[-1]) == "None"
        fed = dotted_in(call.args[0]) & stored_in(*within(loops[0], ast.Assign))
        grows = any(re.search(rf"cat\(.*\b{re.escape(one)}\b", said) for one in fed)
        unread = len(re.findall(rf"\b{re.escape(state)}\b", said)) == 1 or state == "_"
        if empty and fed and unread and not grows and "backward(" not in said and "append(" in said:
            yield look_at(call)


# --- what a step reads ---


@suspects("each step reads the same input")
def _same_input(program: Program) -> Iterator[Spot]:
    """Find a decoder in a loop whose token never changes in the loop."""
    yield from _same_window(program)
    for call in program.calls:
        loops = program.loops(call)
        held = layer(program, call.func) if loops else None
        if held is None or len(call.args) < 2 or "backward(" in text(loops[0]):
            continue
        first = dotted_in(call.args[0])
        fed = r"(inp|input\w*|token\w*|dec\w*_in\w*|x_t|word|prev\w*|decoder_input)$"
        token = [one for one in first if re.match(fed, one)]
        state = dotted_in(*call.args[1:]) & stored_in(loops[0])
        if token and re.search(rf"\b{re.escape(token[0])}{_CHANGED}", text(loops[0])):
            continue  # changed in place
        if token and state and isinstance(loops[0], ast.For) and not first & stored_in(loops[0]):
            yield look_at(call, token=token[0])


def _same_window(program: Program) -> Iterator[Spot]:
    """Find a forecast whose window never gets the values that it has foreseen."""
    for call in program.calls:
        loops, function = program.loops(call), program.function(call)
        if not loops or function is None or not re.search(r"forecast|predict|generat|roll|sampl", function.name):
            continue
        said, loop = text(loops[0]), loops[0]
        first = dotted_in(*call.args[:1])
        name = text(call.args[0]) if call.args else ""
        steps = dotted_in(loop.target) if isinstance(loop, ast.For) else frozenset()
        models = re.fullmatch(r"(self\.)?(model|net|lstm|network)", text(call.func))
        fixed = isinstance(loop, ast.For) and "range(" in text(loop.iter) and not first & (stored_in(loop) | steps)
        inner = "|".join(map(re.escape, sorted({name, *first})))
        grows = re.search(rf"\b({inner})(\.append|\.pop|\.extend|\[.*\] = | \+= )", said)
        if models and fixed and not grows and "append(" in said and "train" not in said:
            yield look_at(call, token=name)


@suspects("decoder reads what it should say")
def _reads_target(program: Program) -> Iterator[Spot]:
    """Find a decoder that reads `target[:, t]` to predict step t, with a loss against the unshifted target."""
    if says(program, r"\[:, 1:\]|\[1:\]|\[1:, |- 1\]|\[:, :-1\]|range\(1, "):
        return
    wanted = {name for one in losses(program) if one.target is not None for name in dotted_in(one.target)}
    for loop, steps in _time_loops(program):
        function = program.function(loop)
        for node in within(loop, ast.Subscript) if function is not None else ():
            if not steps & dotted_in(node.slice):
                continue
            name = text(node.value)
            first = next((one for one in within(loop, ast.Assign)), None)
            early = first is not None and program.statement(node).lineno <= first.lineno
            if not re.match(r"(target|tgt|trg|y|truth)", name) or not early:
                continue
            if (name in wanted or name.startswith("t")) and re.search(r"embed|emb\(", text(program.statement(node))):
                yield look_at(node)


# --- states of LSTMs ---


@suspects_each("cell state read as the result", runs)
def _cell_read(program: Program, one: Run) -> object:
    """Find `out, (h, c) = lstm(x)` where only c is read."""
    statement = program.statement(one.call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is one.call else None
    pair = target.elts[1] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else None
    if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2 or one.name != "LSTM":
        return False
    names = [node for node in inside(program, one.around, ast.Name) if isinstance(node.ctx, ast.Load)]
    reads = {node.id: node for node in names if node.lineno > statement.lineno}
    hidden, cell = (text(part) for part in pair.elts)
    return cell in reads and hidden not in reads and not one.outputs & set(reads) and spot(reads[cell], text=cell)


@suspects_each("one state for both of an LSTM", ast.Call)
def _twice(program: Program, call: ast.Call) -> object:
    """Find `lstm(x, (h, h))` where h is the state of the step before."""
    held = layer(program, call.func)
    state = argument(call, "hx", 1) if held is not None and held.name in {"LSTM", "LSTMCell"} else None
    if not isinstance(state, ast.Tuple) or not len({text(one) for one in state.elts}) == 1 == len(state.elts) - 1:
        return False
    return dotted_in(state) & stored_in(program.statement(call))


# --- equations of cells ---


def _cells(program: Program) -> Iterator[ast.AST]:
    """Yield the functions with two sigmoid gates and a tanh."""
    for node in program.nodes:
        if isinstance(node, FUNCTIONS):
            said = text(node)
            if len(re.findall(r"sigmoid\(", said)) >= 2 and "tanh(" in said:
                yield node


@suspects_each("equation of a cell", _cells)
def _equation(program: Program, function: ast.AST) -> Iterator[Spot]:
    """Find a sigmoid of new content, `i * c + f * g`, or `z * h + z * n`."""
    for node in inside(program, function, ast.Call):
        operand = text(node.args[0]) if node.args else text(getattr(node.func, "value", node))
        if program.called(node) == "sigmoid" and re.fullmatch(r"g|g_t|g_gate|cand\w*|\w*_tilde|c_hat|n_t", operand):
            yield spot(node, text=shown(program.statement(node)))
    for line in inside(program, function, ast.Assign, ast.Return):
        value = line.value if isinstance(line, ast.Assign | ast.Return) else None
        if not is_op(value, ast.Add):
            continue
        left, right = text(value.left), text(value.right)
        target = text(line.targets[0]) if isinstance(line, ast.Assign) else "h"
        if _wrong_sum(left, right, target):
            yield look_at(value)


def _wrong_sum(left: str, right: str, target: str) -> bool:
    """Tell whether a sum of two products has the gates of an LSTM or of a GRU in the wrong places."""
    if re.match(r"(self\.)?c", target):
        for one in (left, right):
            old = re.search(r"\* c(_?(prev|t|old|x))?$|^c(_?(prev|t|old|x))? \*", one)
            if old and re.search(r"\bi(_t|_gate|n\w*)?\b", one) and not re.search(r"\bf", one):
                return True
        return False
    gate = re.search(r"\b(z\w*|u\w*|update\w*)\b", left)
    both = gate is not None and re.search(rf"\b{gate[1]}\b", right) is not None
    return both and bool(re.match(r"h", target)) and "1 -" not in left + right
