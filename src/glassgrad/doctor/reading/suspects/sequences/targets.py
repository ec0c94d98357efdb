"""Suspects about targets of sequences: shifts, masks of the future, losses over places."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.nodes import indices, is_op
from glassgrad.doctor.reading.program import FUNCTIONS, Program, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import receiver, source, text
from glassgrad.doctor.reading.suspects.sequences.parts import extra, firsts, inside, runs, says, turns
from glassgrad.doctor.reading.values import Loss, layer, losses, op

_SHIFTS = re.compile(r":-1\]|\[1:|for t in|for \w+ in range|shift|bos|sos|BOS|SOS|roll\(|pad\(")
"""What says that a class shifts what it gets, or runs step by step."""

# --- shifts ---


def _cut(node: ast.expr | None) -> tuple[str, int] | None:
    """Return the text of x and 1 for `x[:, 1:]`, -1 for `x[:, :-1]`, behind calls and casts."""
    for _ in range(8):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            for part in indices(node):
                if isinstance(part, ast.Slice):
                    if number(part.lower) == 1 and part.upper is None:
                        return text(node.value), 1
                    if part.lower is None and number(part.upper) == -1:
                        return text(node.value), -1
            return None
        else:
            return None
    return None


def _shift(program: Program, node: ast.expr | None) -> tuple[str, int] | None:
    """Return the cut of an expression, or of what its name holds."""
    for _ in range(4):
        found = _cut(node)
        if found is not None or node is None:
            return found
        node = program.value_of(receiver(node))
    return None


@suspects_each("shifted the wrong way", losses)
def _wrong_way(program: Program, one: Loss) -> Iterator[Spot]:
    """Find a loss of `logits[:, 1:]` and `tokens[:, :-1]`, or inputs `tokens[:, 1:]` with targets `tokens[:, :-1]`."""
    given, wanted = _shift(program, one.input), _shift(program, one.target)
    if wanted is None or wanted[1] != -1:
        return
    if given is not None and given[1] == 1 and given[0] != wanted[0]:
        yield look_at(one.call, program.statement(one.call))
        return
    for call in program.calls:
        same = program.function(call) is program.function(one.call) and call is not one.call
        fed = [_shift(program, arg) for arg in call.args] if same and layer(program, call.func) is not None else []
        if any(cut == (wanted[0], 1) for cut in fed):
            yield look_at(one.call, call)


@suspects("shifted twice")
def _twice(program: Program) -> Iterator[Spot]:
    """Find targets that the data shift by one, and the loss once more."""
    pairs = r"\[\w*:?-1\][^\n]*\[1:|\[:, :-1\][^\n]*\[:, 1:|\[\w+ ?\+ ?1:\w+ ?\+ ?1 ?\+|\[\w+ \+ 1:\w+ \+ \w+ \+ 1\]"
    data = re.compile(r"getitem|batch|collate|window|pair|data|make|load|iter|split|chunk")
    makers = [one for one in program.nodes if isinstance(one, FUNCTIONS) and data.search(one.name)]
    makers = [one for one in makers if re.search(pairs, text(one).replace("\n", " "))]
    with_loss = {program.function(one.call) for one in losses(program)}
    for one in losses(program):
        given, wanted = _shift(program, one.input), _shift(program, one.target)
        around = program.function(one.call)
        if given is None or wanted is None or (given[1], wanted[1]) != (-1, 1):
            continue
        others = [maker for maker in makers if maker is not around and maker not in with_loss]
        if others and given[0] != wanted[0]:
            yield spot(_where_cut(program, one.target), *others, text=shown(one.call))


def _where_cut(program: Program, node: ast.expr | None) -> ast.expr:
    """Return the expression that cuts a target."""
    assert node is not None
    return (program.source_of(receiver(node)) if _cut(node) is None else None) or node


@suspects_each("decoder gets its own targets", losses)
def _own_targets(program: Program, one: Loss) -> Iterator[Spot]:
    """Find `model(source, target)` with a loss against the same target, unshifted."""
    base = receiver(one.target) if one.target is not None else None
    if not isinstance(base, ast.Name) or one.kind != "cross_entropy":
        return
    for call in program.calls:
        if program.function(call) is not program.function(one.call) or call is one.call or len(call.args) < 2:
            continue
        held = layer(program, call.func)
        given = [text(arg) for arg in call.args[1:]]
        own = held is not None and (held.owner is not None or held.name == "Transformer")
        if (
            held is None
            or not own
            or base.id not in given
            or (held.owner is not None and _SHIFTS.search(text(held.owner.node)))
        ):
            continue
        if re.match(r"(tgt|trg|target|y|dec|out|label)", base.id):
            yield spot(one.call, program.statement(one.call), call, text=shown(call), target=base.id)


@suspects_each("no target mask", ast.Call)
def _no_target_mask(program: Program, call: ast.Call) -> object:
    """Find a decoder of the library without a mask of the future."""
    held = layer(program, call.func)
    if held is None or held.owner is not None:
        return False
    decodes = held.name in {"Transformer", "TransformerDecoder", "TransformerDecoderLayer"}
    keys = {one.arg for one in call.keywords}
    place = 3 if held.name == "Transformer" else 2
    if not decodes or keys & {"tgt_mask", "tgt_is_causal", None}:
        return False
    return len(call.args) <= place and says(program, r"cross_entropy|CrossEntropy|NLLLoss")


@suspects("mask of another axis")
def _mask_axis(program: Program) -> Iterator[Spot]:
    """Find a causal mask made of the size of axis 0 where the batch comes first."""
    known = firsts(program)
    for call in program.calls:
        if program.called(call) == "generate_square_subsequent_mask" and call.args:
            said = text(call.args[0])
            if known == {True} and re.search(r"\.size\(0\)|\.shape\[0\]|^len\(\w+\)$", said):
                yield look_at(call)


_AHEAD = re.compile(
    r"gpt|auto_?reg|next|shift|stream|forecast|horizon|language|action|\broll\(|\bgenerate\(|TransformerDecoder|"
    r"nn\.Transformer\(|\bTransformer\(|\[(:, |\.\.\., )?-1(, :)?\]",
    re.IGNORECASE,
)
"""What a script says that predicts the future, or that reads only the last place, which sees all others."""


@suspects("future hidden where nothing is predicted ahead")
def _hidden(program: Program) -> Iterator[Spot]:
    """Find a causal mask in a training whose targets are not the inputs of later places."""
    trains = bool(program.calls_of(".backward")) and bool(losses(program))
    if not trains or _AHEAD.search(source(program)) or any(_looks_ahead(one) for one in program.nodes):
        return
    for call in program.calls:
        causal = any(one.arg == "is_causal" and constant(one.value) is True for one in call.keywords)
        name = program.called(call).rstrip("_")
        given = extra(program, call, "diagonal")
        strict = name == "triu" and number(given) == 1 and re.search(r"ones|inf", text(call))
        triangle = strict or (name == "tril" and given is None and "ones" in text(call))
        owner = program.owner(call)
        module = owner is not None and owner.is_module and text(owner.node)
        attends = module and re.search(r"attn|attention|Transformer|softmax", module)
        if causal or name == "generate_square_subsequent_mask" or (triangle and attends):
            yield look_at(call)


def _looks_ahead(node: ast.AST) -> bool:
    """Tell whether an index leaves out the first or the last place, or is that of the place behind another."""
    for part in indices(node) if isinstance(node, ast.Subscript) else ():
        bounds = [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]
        moved = any(re.search(r"\+ 1$", text(one)) for one in bounds if one is not None)
        ends = isinstance(part, ast.Slice) and part.step is None and (number(part.lower), number(part.upper))
        if moved or ends in {(1.0, None), (None, -1.0)}:
            return True
    return False


# --- losses over positions ---


@suspects_each("view of scores into classes and places", losses)
def _view_classes(program: Program, one: Loss) -> object:
    """Find `cross_entropy(logits.view(batch, classes, -1), y)` of scores with the classes last."""
    node = one.input
    if one.kind not in {"cross_entropy", "nll_loss"} or not isinstance(node, ast.Call) or len(node.args) != 3:
        return False
    viewed = program.called(node) in {"view", "reshape"} and not turns(node)
    return viewed and spot(one.call, program.statement(one.call), text=shown(node))


@suspects_each("mean over masked places", ast.Call)
def _masked_mean(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `(loss * mask).mean()`."""
    name, operand = op(program, call)
    operand = program.source_of(operand) or operand
    if name == "mean" and is_op(operand, ast.Mult) and not call.args[1:]:
        sides = [text(one) for one in (operand.left, operand.right)]
        masks = [one for one in sides if re.search(r"mask|valid|not_pad|keep$", one)]
        if masks and any(re.search(r"loss|nll|ce\b|err|entropy|\*\* 2", one) for one in sides):
            yield look_at(call, mask=masks[0])


@suspects_each("loss of the padding alone", operations(ast.Mult))
def _padding_alone(program: Program, node: ast.BinOp) -> object:
    """Find `(loss * pad_mask).sum()`, by its name a mask of the padding."""
    sides = [text(one) for one in (node.left, node.right)]
    pads = any(re.fullmatch(r"(self\.)?(pad\w*|is_pad\w*|padding\w*)(\.float\(\))?", one) for one in sides)
    return pads and any(re.search(r"loss|nll|ce\b|err", one) for one in sides)


@suspects("mean that counts the padding")
def _counts_padding(program: Program) -> Iterator[Spot]:
    """Find `e.sum(1) / x.size(1)` of padded sequences."""
    if not says(program, r"(?i)\bpad|lengths?\b"):
        return
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Div) and isinstance(node.left, ast.Call):
            axis = re.search(r"sum\((dim=|axis=)?1\)$", text(node.left))
            if axis and "mask" not in text(node) and re.fullmatch(r"\w+\.(size\(1\)|shape\[1\])", text(node.right)):
                yield look_at(node)


@suspects("loss that knows no padding")
def _knows_none(program: Program) -> Iterator[Spot]:
    """Find cross entropy over the places of sequences in a script that pads its targets by hand."""
    pads = says(
        program,
        r"\[(PAD\w*|pad\w*|0)\] \* \(|\bPAD\b|pad_idx|PAD_IDX|<pad>|pad_id\b|"
        r"torch\.zeros\(len\(\w+\), .*\n(.*\n){0,4}.*\[i, :len\(",
    )
    knows = r"ignore_index|-100|[mM]ask|pack_padded|!= (self\.)?(PAD|pad)|\.ne\("
    measures = [said for one in program.functions.values() if "no_grad()" in (said := text(one))]
    measured = sum(len(re.findall(knows, said)) for said in measures if "backward" not in said)
    if not pads or len(re.findall(knows, source(program))) > measured:
        return
    for one in losses(program):
        said = text(one.call)
        places = re.search(r"flatten\(0, 1\)|transpose\(1, 2\)|permute\(0, 2, 1\)|(view|reshape)\(-1, ", said)
        if one.kind == "cross_entropy" and places:
            yield look_at(one.call, program.statement(one.call))


@suspects("first step of the outputs never filled")
def _never_filled(program: Program) -> Iterator[Spot]:
    """Find a loss over all outputs of a decoder whose loop begins at 1."""
    fills = [loop for loop in program.every(ast.For) if re.match(r"range\(1, ", text(loop.iter))]
    fills = [loop for loop in fills if re.search(r"outputs?\[(:)?t\] = ", text(loop))]
    for one in losses(program) if fills else ():
        if _shift(program, one.input) is not None or one.kind != "cross_entropy":
            continue
        if not re.search(r"\[1:|1:\]", text(one.call)):
            yield look_at(one.call, program.statement(one.call), *fills[:1])


@suspects_each("perplexity to another base", operations(ast.Pow))
def _perplexity(program: Program, node: ast.BinOp) -> object:
    """Find `2 ** loss` of a loss in nats."""
    if number(node.left) != 2 or not re.search(r"loss|nll|entropy|\bce\b", text(node.right)):
        return False
    return not re.search(r"log\(2|log2", text(node))


@suspects("loss over places that were not masked")
def _unmasked_places(program: Program) -> Iterator[Spot]:
    """Find a loss over all places beside `ids[chosen] = MASK`."""
    if says(program, r"-100|ignore_index"):
        return
    for node in program.every(ast.Assign):
        target = node.targets[0]
        if not isinstance(target, ast.Subscript):
            continue
        if not re.search(r"MASK|mask_token|mask_id|\[MASK\]", text(node.value)):
            continue
        chosen = text(target.slice)
        for one in losses(program):
            if one.kind == "cross_entropy" and f"[{chosen}]" not in text(one.call) and "mask" not in text(one.call):
                yield look_at(one.call, program.statement(one.call), node)


@suspects("rows of time against rows of examples")
def _time_major(program: Program) -> Iterator[Spot]:
    """Find time-major scores and batch-major targets, both flattened."""
    majors = [one for one in runs(program) if one.batch_first is False and not one.hidden & one.outputs]
    inner = " ".join(text(one.around) for one in majors)
    once = len(re.findall(r"\.t\(\)|transpose\((0, 1|1, 0)\)|permute\(1, 0, 2\)", inner)) == 1
    for one in losses(program) if majors and once else ():
        flat = re.search(r"(view|reshape)\(-1, |flatten\(0, 1\)", text(one.input))
        rows = one.target is not None and re.search(r"^\w+\.(view\(-1\)|reshape\(-1\)|flatten\(\))$", text(one.target))
        if flat and rows:
            yield look_at(one.call, program.statement(one.call))


@suspects_each("labels copied behind the masking", ast.Assign)
def _masked_labels(program: Program, node: ast.Assign) -> Iterator[Spot]:
    """Find `labels = ids.clone()` behind `ids[chosen] = MASK`."""
    if not isinstance(node.targets[0], ast.Subscript):
        return
    said = f"{text(node.value)} "
    base = text(node.targets[0].value)
    if not re.search(r"(?i)mask", said) or not re.search(r"mask|chosen|pick|sel", text(node.targets[0].slice)):
        return
    around = program.around(node)
    for later in inside(program, around, ast.Assign):
        copies = re.fullmatch(rf"{re.escape(base)}(\.clone\(\)|\.copy\(\))?", text(later.value))
        if later.lineno > node.lineno and copies and re.search(r"label|target|\by\b", text(later.targets[0])):
            yield look_at(later, node)


@suspects("inputs as their own labels")
def _own_labels(program: Program) -> Iterator[Spot]:
    """Find `model(ids, labels=ids)` for a model of the script that shifts nothing."""
    shifts = r"1:|:-1|roll\(|shift|mask"
    bodies = [text(one.methods["forward"]) for one in program.modules() if "forward" in one.methods]
    aware = [body for body in bodies if re.search(r"labels|targets", body)]
    for call in program.calls if aware and not any(re.search(shifts, body) for body in aware) else ():
        labels = [one.value for one in call.keywords if one.arg and re.search(r"label|target", one.arg)]
        if labels and call.args and text(labels[0]) == text(call.args[0]) and "cross_entropy" in aware[0]:
            yield look_at(call, program.statement(call))
