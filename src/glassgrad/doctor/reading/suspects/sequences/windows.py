"""Suspects about windows of time series: their targets, their split, shifts of frames, causal convolutions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import indices, is_op, names_in, within
from glassgrad.doctor.reading.program import DEEPEST, Class, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import calls_of, text
from glassgrad.doctor.reading.suspects.sequences.parts import inside, says
from glassgrad.doctor.reading.values import layer, losses

_SAME = named(
    "tensor as_tensor from_numpy array asarray FloatTensor Tensor float float32 astype to copy clone reshape view "
    "squeeze unsqueeze flatten"
)
"""Calls that keep the numbers of a window."""


def _windows(program: Program) -> Iterator[tuple[ast.AST, ast.Subscript, str, str]]:
    """Yield the slices `x[a:b]` with a variable in both bounds: the function, the slice and its bounds."""
    for node in program.nodes:
        part = indices(node)[0] if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
        if isinstance(program.parents.get(node), ast.Subscript):
            continue  # an index such as `x[order[i : i + n]]`
        if not isinstance(node, ast.Subscript) or not isinstance(part, ast.Slice):
            continue
        if part.lower is not None and part.upper is not None and names_in(part.lower):
            yield program.around(node), node, text(part.lower), text(part.upper)


def _names_a_target(statement: ast.stmt) -> bool:
    """Tell whether a statement stores a target, by the name of what it stores, or returns or appends a pair."""
    said = text(statement)
    if re.match(r"return |\w+\.append\(\(", said):
        return True
    return bool(re.search(r"\b[yY]\w*|[tT]arget|label", re.split(r" = |\.append", said)[0]))


@suspects("target within its window")
def _within(program: Program) -> Iterator[Spot]:
    """Find a window `x[a:i + 1]` with the target `x[i]`, or a gap of a step between them."""
    for around, window, lower, upper in _windows(program):
        for node in inside(program, around, ast.Subscript):
            if node is window or not isinstance(node.ctx, ast.Load):
                continue
            index = text(indices(node)[0])
            ahead = program.function(node) is not None and _names_a_target(program.statement(node))
            if text(node.value) != text(window.value) or not ahead or index == lower:
                continue
            part = indices(node)[0]
            start = text(part.lower) if isinstance(part, ast.Slice) and part.lower is not None else ""
            if (
                upper == f"{index} + 1"
                or start in {f"{upper} - 1", f"{upper} + 1"}
                or (upper != lower and index == f"{upper} + 1")
            ):
                yield look_at(node, window, window=shown(window))


@suspects("target equal to its window")
def _equal(program: Program) -> Iterator[Spot]:
    """Find inputs and targets that are the same slice."""
    found = list(_windows(program))
    for around, first, lower, upper in found:
        for other_around, second, *bounds in found:
            same = around is other_around and first is not second and [lower, upper] == bounds
            if not same or text(first.value) != text(second.value) or first.lineno >= second.lineno:
                continue
            names = [text(getattr(program.statement(one), "targets", [ast.Pass()])[0]) for one in (first, second)]
            if re.search(r"^x|inp|src|ids|seq", names[0]) and re.search(r"^y|targ|label|tgt|next", names[1]):
                yield look_at(second, first)


@suspects("example that is its own target")
def _own_target(program: Program) -> Iterator[Spot]:
    """Find `return chunk, chunk` of a data set of tokens that nothing shifts."""
    if not says(program, r"CrossEntropy|cross_entropy") or says(program, r":-1\]|\[1:\]|1:\]|:, 1:|roll\(|[mM]ask"):
        return
    for node in program.nodes:
        pair = node.value if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) else None
        function = program.function(node) if pair is not None else None
        if pair is None or len(pair.elts) != 2 or function is None:
            continue
        plain = isinstance(pair.elts[0], ast.Name | ast.Subscript)
        same = plain and text(pair.elts[0]) == text(pair.elts[1])
        if same and re.search(r"getitem|batch|chunk|pair|window|sequence", function.name):
            yield spot(pair, text=shown(node))


@suspects("targets two steps ahead")
def _two_ahead(program: Program) -> Iterator[Spot]:
    """Find inputs `x[i:i + n]` with targets `x[i + 2:i + n + 2]`."""
    found = list(_windows(program))
    for around, first, lower, upper in found:
        for other, second, start, _ in found:
            far = re.fullmatch(rf"{re.escape(lower)} \+ ([2-9])", start)
            same = around is other and text(first.value) == text(second.value)
            if far and same and start != upper and re.search(r"\b[yY]|[tT]arg|label", text(program.statement(second))):
                yield look_at(second, first)


@suspects("overlapping windows split at random")
def _split(program: Program) -> Iterator[Spot]:
    """Find a random split in a script that cuts overlapping windows of a series."""
    sliding = r"\.unfold\(|sliding_window_view\(|\[(i|t|k|s|start|idx|j):\1 \+ \w+[\],]|\[(i|t|k) - \w+:(i|t|k)[\],]"
    slides = says(program, sliding)
    words = says(program, r"(?i)window|series|look_?back|horizon|forecast|lag\b|seq_len|n_steps|history")
    if not slides or not words or says(program, r"Embedding\("):
        return
    for call in program.calls:
        name = program.called(call)
        keys = {one.arg: text(one.value) for one in call.keywords}
        split = name == "train_test_split" and keys.get("shuffle") != "False" and "groups" not in keys
        if split or name == "random_split":
            yield look_at(call)
        target = text(program.statement(call))
        if name in {"randperm", "permutation"} and not program.loops(call) and not call.keywords:
            base = re.match(r"(\w+) = ", target)
            cuts = base and re.search(rf"(test|val|train)\w*\b.*= .*\b{base[1]}\[(:\w|\w+:|-)", text(program.tree))
            if cuts:
                yield look_at(call)


@suspects_each("shifted against the time", calls_of(".shift"))
def _frames(program: Program, call: ast.Call) -> object:
    """Find `frame["target"] = x.shift(1)` and `frame["lag"] = x.shift(-1)` of pandas."""
    periods = argument(call, "periods", 0)
    by = number(periods) if periods is not None else 1.0
    statement = program.statement(call)
    name = text(statement.targets[0]).lower() if isinstance(statement, ast.Assign) else ""
    ahead = re.search(r"target|label|next|future|\by\b|'y'", name)
    behind = re.search(r"lag|prev|past|last|before", name)
    plain = text(statement).count("shift(") == 1 and not re.search(r" [-/<>] |pct_change|diff", text(statement))
    return plain and by is not None and ((ahead and by > 0) or (behind and not ahead and by < 0)) and look_at(statement)


@suspects_each("causal convolution that sees ahead", Program.modules)
def _ahead(program: Program, owner: Class) -> Iterator[Spot]:
    """Find a causal convolution padded on the right, or on both sides without a cut."""
    said = text(owner.node)
    if not re.search(r"(?i)causal|tcn|temporalblock|wavenet|chomp", said):
        return
    for call in within(owner.node, ast.expr):
        cut = isinstance(call, ast.Subscript) and "homp" in owner.node.name
        if cut and re.search(r"\[(:, :|\.\.\.), [\w.]+:\]$", text(call)):
            yield look_at(call)
        if not isinstance(call, ast.Call):
            continue
        given = call.args[1] if program.called(call) == "pad" and len(call.args) > 1 else None
        sides = given.elts if isinstance(given, ast.Tuple) else []
        if len(sides) == 2 and number(sides[0]) == 0 and number(sides[1]) != 0:
            yield look_at(call)
        keys = {one.arg for one in call.keywords}
        conv = program.called(call) == "Conv1d" and "padding" in keys and "weight_norm" not in said
        if not conv or re.search(r"(?i)chomp|:-|- self\.pad|pad\(|\.size\(|shape\[|narrow", said):
            continue
        if "padding=0" not in text(call):
            yield look_at(call)


@suspects("target in another scale than its window")
def _unscaled_target(program: Program) -> Iterator[Spot]:
    """Find `(w - w.mean()) / w.std(), x[i : i + k]` of a window w of x, for a model whose output is the forecast."""
    fitted = [one for one in losses(program) if one.target is not None]
    direct = [_is_output(program, one.input) for one in fitted]
    for node in program.nodes if direct and all(direct) else ():
        pair = node if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1 else None
        outer = program.parents.get(node)
        if pair is None or not (isinstance(outer, ast.Return | ast.Yield) or getattr(outer, "args", None) == [pair]):
            continue
        window, target = _scaled_by_itself(program, pair.elts[0]), _bare(program, pair.elts[1])
        both = [text(one.value) if isinstance(one, ast.Subscript) else "" for one in (window, target)]
        if both[0] and both[0] == both[1] and window is not None and text(window) != text(target):
            yield spot(pair, program.statement(pair), text=text(pair.elts[1]), window=text(pair.elts[0]))


def _is_output(program: Program, node: ast.expr) -> bool:
    """Tell whether a prediction is what a model makes of one input, without anything behind it."""
    made = _bare(program, node)
    return isinstance(made, ast.Call) and len(made.args) == 1 and layer(program, made.func) is not None


def _bare(program: Program, node: ast.expr) -> ast.expr:
    """Return what a value is made of, through names, casts and shapes."""
    for _ in range(DEEPEST):
        made = program.value_of(node)
        if made is None and isinstance(node, ast.Call) and program.called(node) in _SAME:
            made = program.operand(node)
        if made is None:
            break
        node = made
    return node


def _scaled_by_itself(program: Program, node: ast.expr) -> ast.expr | None:
    """Return w of `(w - w.mean()) / w.std()`, `w / w[0] - 1`, `Scaler().fit_transform(w)` and `Scaler().fit(w)`."""
    made = _bare(program, node)
    if isinstance(made, ast.Call) and made.args:
        held = _bare(program, made.func.value) if isinstance(made.func, ast.Attribute) else made
        fits = re.search(r"fit_transform$", text(made.func)) or (
            isinstance(held, ast.Call)
            and text(held.args[0] if held.args else None) == text(made.args[0])
            and re.search(r"\.fit\(|[nN]orm|[sS]cal", text(held))
        )
        return _bare(program, made.args[0]) if fits else None
    while is_op(made, ast.Sub) and number(made.right) is not None:
        made = made.left
    if not is_op(made, ast.Div):
        return None
    inner = made.left.left if is_op(made.left, ast.Sub) else made.left
    divisor = made.right.left if isinstance(made.right, ast.BinOp) else made.right
    own = text(_bare(program, divisor)) if isinstance(divisor, ast.Name) else text(divisor)
    name = re.escape(text(inner))
    measured = re.search(rf"^(np\.|torch\.)\w+\({name}[,)]|^{name}(\.\w+\(|\[(0|-1)\])", own)
    return _bare(program, inner) if measured else None
