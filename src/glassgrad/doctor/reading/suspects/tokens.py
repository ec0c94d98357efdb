"""Suspects about tokens and targets: positions, shifts, padding, vocabularies, losses over sequences, generation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument, constant, is_given, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.sequence_parts import (
    TRANSFORMERS,
    called,
    extra,
    flag,
    inside,
    names_in,
    parts_of,
    runs,
    says,
    turns,
)
from glassgrad.doctor.reading.values import layer, losses, op

_TABLE = re.compile(r"(^|[._])(pe|pos|positions?|position\w*|pos_\w+|\w*pos_?e\w*|wpe|places?)$", re.IGNORECASE)


# --- positions ---


def _tables(program: Program) -> Iterator[ast.Subscript]:
    """Yield the subscripts of tables of positions."""
    for node in program.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Name | ast.Attribute) and _TABLE.search(ast.unparse(node.value)):
                yield node


@suspects("one row of the positions")
def _one_row(program: Program) -> Iterator[Spot]:
    """Find `self.pe[:, x.size(1)]`, which takes one row instead of those up to it."""
    for node in _tables(program):
        for part in parts_of(node):
            if re.search(r"\.(size\(\d\)|shape\[\d\])$|^len\(|^(seq_len|T|t_len|length)$", ast.unparse(part)):
                yield spot(node, text=shown(node))


@suspects("positions along the batch")
def _along_batch(program: Program) -> Iterator[Spot]:
    """Find `self.pe[:x.size(0)]` or `arange(x.size(0))` in a script with the batch first."""
    firsts = {one.batch_first for one in runs(program)}
    firsts |= {flag(program, one, "batch_first") for one in program.calls if called(program, one) in TRANSFORMERS}
    seen = (
        [node for node in program.nodes if isinstance(node, ast.Subscript) and node in set(_tables(program))],
        [one for one in program.calls if called(program, one) == "arange"],
    )
    by_first = r"\w+\.(size\((dim=)?0\)|shape\[0\])|len\(x\)"
    for node in seen[0]:
        first = parts_of(node)[0]
        upper = ast.unparse(first.upper) if isinstance(first, ast.Slice) and first.upper is not None else ""
        second = parts_of(node)[1:2]
        later = re.fullmatch(rf":({by_first})", ast.unparse(second[0])) if second else None
        owner = program.owner(node)
        turned = owner is not None and re.search(r"transpose\(0, 1|permute\(1, 0, 2|unsqueeze\(1\)", ast.unparse(owner.node))
        if later or (re.fullmatch(by_first, upper) and True in firsts and False not in firsts and not turned):
            yield spot(node, text=shown(node))
    for call in seen[1]:
        outer = program.statement(call)
        if len(call.args) == 1 and re.fullmatch(by_first, ast.unparse(call.args[0])) and "pos" in ast.unparse(outer).lower():
            if firsts != {False} and program.function(call) is not None:
                yield spot(call, text=shown(call))


@suspects("positions looked up by tokens")
def _by_tokens(program: Program) -> Iterator[Spot]:
    """Find `self.position(x)` of an embedding that gets the same tokens as the embedding of words."""
    for owner in program.modules():
        calls = [one for one in ast.walk(owner.methods.get("forward") or ast.Pass()) if isinstance(one, ast.Call)]
        made = [(one, held) for one in calls if (held := layer(program, one.func)) is not None and held.name == "Embedding"]
        for call, _ in made:
            if not re.search(r"pos|wpe|place", ast.unparse(call.func)) or len(call.args) != 1:
                continue
            text = ast.unparse(call.args[0])
            others = [one for one, _ in made if one is not call and ast.unparse(one.func) != ast.unparse(call.func)]
            if any(ast.unparse(one.args[0]) == text for one in others if one.args):
                yield spot(call, text=shown(call))


@suspects("attention without positions")
def _no_positions(program: Program) -> Iterator[Spot]:
    """Find a transformer over embedded tokens in a script that never speaks of positions."""
    if says(program, r"(?i)pos|\bpe\b|rope|rotary|alibi|place|time_emb|order_emb|sinus|torch\.sin|wpe|slots?|LSTM|GRU|conv1d|tril"):
        return
    for call in program.calls:
        held = layer(program, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
        known = held is not None and held.owner is None and held.name in {"TransformerEncoder", "Transformer"}
        if known and says(program, r"Embedding\(") and program.owner(call) is not None:
            yield spot(call, text=shown(call))


@suspects("formula of the positions")
def _sinusoids(program: Program) -> Iterator[Spot]:
    """Find the same function for even and odd places, or frequencies that grow instead of fall."""
    waves: dict[ast.AST, list[tuple[ast.Assign, str]]] = {}
    for node in program.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and isinstance(node.value, ast.Call):
            if re.search(r"[01]::2", ast.unparse(node.targets[0])) and called(program, node.value) in {"sin", "cos"}:
                waves.setdefault(program.function(node) or program.tree, []).append((node, called(program, node.value)))
    for around, found in waves.items():
        if len(found) == 2 and found[0][1] == found[1][1]:
            yield spot(found[1][0], text=shown(found[1][0]))
        for node in inside(program, around, ast.Assign):
            if isinstance(node, ast.Assign) and re.search(r"exp\(.*log\(10000", ast.unparse(node.value)):
                divides = any(re.search(rf"/ {ast.unparse(node.targets[0])}\b", ast.unparse(one)) for one, _ in found)
                if "-" not in ast.unparse(node.value) and not divides:
                    yield spot(node, text=shown(node))


@suspects("positions not added")
def _not_added(program: Program) -> Iterator[Spot]:
    """Find positions multiplied into the embeddings, or added twice: by the module and by its caller."""
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Add):
            continue
        for side, other in ((node.left, node.right), (node.right, node.left)):
            table = isinstance(side, ast.Subscript | ast.Call) and ast.unparse(side).startswith("self.")
            if not table or not _TABLE.search(ast.unparse(side.func if isinstance(side, ast.Call) else getattr(side, "value", side))):
                continue
            if isinstance(node.op, ast.Mult) and not isinstance(other, ast.Constant) and number(other) is None:
                if isinstance(other, ast.Name | ast.Call) and not re.search(r"sqrt|scale|alpha|len", ast.unparse(other)):
                    yield spot(node, text=shown(node))
            elif isinstance(node.op, ast.Add) and isinstance(side, ast.Call) and _adds_itself(program, side):
                if [ast.unparse(one) for one in side.args[:1]] == [ast.unparse(other)]:
                    yield spot(node, text=shown(node))


def _adds_itself(program: Program, call: ast.Call) -> bool:
    held = layer(program, call.func)
    method = program.method(held.owner, "forward") if held is not None else None
    if method is None or len(method.args.args) < 2:
        return False
    name = method.args.args[1].arg
    return bool(re.search(rf"\b{name} \+ |return .*\b{name} \+|{name} \+= ", ast.unparse(method)))


# --- shifts ---


def _cut(node: ast.expr | None) -> tuple[str, int] | None:
    """Return the text of x and 1 for `x[:, 1:]`, -1 for `x[:, :-1]`, behind calls and casts."""
    for _ in range(8):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            for part in parts_of(node):
                if isinstance(part, ast.Slice):
                    if number(part.lower) == 1 and part.upper is None:
                        return ast.unparse(node.value), 1
                    if part.lower is None and number(part.upper) == -1:
                        return ast.unparse(node.value), -1
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
        base = node
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
            base = base.func.value
        bound = program.bound(base) if isinstance(base, ast.Name) else None
        node = bound.value if bound is not None and bound.item is None else None
    return None


@suspects("shifted the wrong way")
def _wrong_way(program: Program) -> Iterator[Spot]:
    """Find a loss of `logits[:, 1:]` and `tokens[:, :-1]`, or inputs `tokens[:, 1:]` with targets `tokens[:, :-1]`."""
    for one in losses(program):
        given, wanted = _shift(program, one.input), _shift(program, one.target)
        if wanted is None or wanted[1] != -1:
            continue
        if given is not None and given[1] == 1 and given[0] != wanted[0]:
            yield spot(one.call, program.statement(one.call), text=shown(one.call))
            continue
        for call in program.calls:
            same = program.function(call) is program.function(one.call) and call is not one.call
            fed = [_shift(program, arg) for arg in call.args] if same and layer(program, call.func) is not None else []
            if any(cut == (wanted[0], 1) for cut in fed):
                yield spot(one.call, call, text=shown(one.call))


@suspects("shifted twice")
def _twice(program: Program) -> Iterator[Spot]:
    """Find targets that the data shift by one, and the loss once more."""
    pairs = r"\[\w*:?-1\][^\n]*\[1:|\[:, :-1\][^\n]*\[:, 1:|\[\w+ ?\+ ?1:\w+ ?\+ ?1 ?\+|\[\w+ \+ 1:\w+ \+ \w+ \+ 1\]"
    makers = [one for one in program.nodes if isinstance(one, FUNCTIONS) and re.search(pairs, ast.unparse(one).replace("\n", " "))]
    for one in losses(program):
        given, wanted = _shift(program, one.input), _shift(program, one.target)
        around = program.function(one.call)
        if given is None or wanted is None or (given[1], wanted[1]) != (-1, 1):
            continue
        others = [maker for maker in makers if maker is not around and not _has_loss(program, maker)]
        if others and given[0] != wanted[0]:
            yield spot(one.call, program.statement(one.call), *others, text=shown(one.call))


def _has_loss(program: Program, function: ast.AST) -> bool:
    return any(program.function(one.call) is function for one in losses(program))


@suspects("decoder gets its own targets")
def _own_targets(program: Program) -> Iterator[Spot]:
    """Find `model(source, target)` with a loss against the same target, unshifted."""
    for one in losses(program):
        base = one.target
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
            base = base.func.value
        if not isinstance(base, ast.Name) or one.kind != "cross_entropy":
            continue
        for call in program.calls:
            if program.function(call) is not program.function(one.call) or call is one.call or len(call.args) < 2:
                continue
            held = layer(program, call.func)
            given = [ast.unparse(arg) for arg in call.args[1:]]
            if held is not None and base.id in given and re.match(r"(tgt|trg|target|y|dec|out|label)", base.id):
                if held.owner is None or not _shifts(program, held.owner.node):
                    yield spot(one.call, program.statement(one.call), call, text=shown(call), target=base.id)


def _shifts(program: Program, node: ast.AST) -> bool:
    """Tell whether a class shifts what it gets, or runs step by step."""
    return bool(re.search(r":-1\]|\[1:|for t in|for \w+ in range|shift|bos|sos|BOS|SOS|roll\(|pad\(", ast.unparse(node)))


@suspects("no target mask")
def _no_target_mask(program: Program) -> Iterator[Spot]:
    """Find a decoder of the library without a mask of the future."""
    for call in program.calls:
        held = layer(program, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
        if held is None or held.owner is not None:
            continue
        decodes = held.name in {"Transformer", "TransformerDecoder", "TransformerDecoderLayer"}
        keys = {one.arg for one in call.keywords}
        place = 3 if held.name == "Transformer" else 2
        if decodes and not keys & {"tgt_mask", "tgt_is_causal", None} and len(call.args) <= place:
            if says(program, r"cross_entropy|CrossEntropy|NLLLoss"):
                yield spot(call, text=shown(call))


@suspects("mask of another axis")
def _mask_axis(program: Program) -> Iterator[Spot]:
    """Find a causal mask made of the size of axis 0 where the batch comes first."""
    firsts = {flag(program, one, "batch_first") for one in program.calls if called(program, one) in TRANSFORMERS}
    for call in program.calls:
        if called(program, call) == "generate_square_subsequent_mask" and call.args:
            text = ast.unparse(call.args[0])
            if firsts == {True} and re.search(r"\.size\(0\)|\.shape\[0\]|^len\(\w+\)$", text):
                yield spot(call, text=shown(call))


# --- decoding ---


@suspects("teacher forcing turned round")
def _teacher(program: Program) -> Iterator[Spot]:
    """Find `top if teacher_force else target[t]`."""
    for node in program.nodes:
        if isinstance(node, ast.IfExp) and re.search(r"teacher|forc|\btf\b", ast.unparse(node.test)):
            body, other = ast.unparse(node.body), ast.unparse(node.orelse)
            true = r"trg|tgt|target|\by\b|truth|label|gold"
            if not re.search(true, body) and re.search(true, other) and not re.search(r"not |>", ast.unparse(node.test)):
                yield spot(node, text=shown(node))


@suspects("teacher forcing in the evaluation")
def _forced(program: Program) -> Iterator[Spot]:
    """Find a model with teacher forcing by default, evaluated with the targets and without turning it off."""
    for owner in program.modules():
        forward = owner.methods.get("forward")
        names = [one.arg for one in forward.args.args] if forward is not None else []
        ratio = next((one for one in names if re.search(r"teacher|forcing|tf_ratio", one)), None)
        if forward is None or ratio is None or "self.training" in ast.unparse(forward):
            continue
        place = names.index(ratio) - 1
        for call in program.calls:
            held = layer(program, call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
            if held is None or held.owner is not owner or is_given(call, ratio, place) or len(call.args) < 2:
                continue
            around = [ast.unparse(one.items[0]) for one in program.outward(call) if isinstance(one, ast.With)]
            function = program.function(call)
            measured = any("no_grad" in one or "inference" in one for one in around)
            decorated = function is not None and any("no_grad" in ast.unparse(one) for one in function.decorator_list)
            if measured or decorated or (function is not None and re.search(r"eval|valid|test", function.name)):
                yield spot(call, text=shown(call), ratio=ratio)


@suspects("first place of the scores")
def _first_place(program: Program) -> Iterator[Spot]:
    """Find `logits[:, 0]` in a loop that appends tokens."""
    for node in program.nodes:
        loops = program.loops(node) if isinstance(node, ast.Subscript) else []
        if loops and re.fullmatch(r"(logits|scores|out|output|outputs|preds?|y_hat)\[(:, 0(, :)?|0, 0)\]", ast.unparse(node)):
            text = ast.unparse(loops[0])
            if re.search(r"cat\(|append\(", text) and "backward(" not in text and isinstance(node, ast.Subscript):
                yield spot(node, text=shown(node))


@suspects("wrong side of the cut")
def _wrong_side(program: Program) -> Iterator[Spot]:
    """Find `logits[logits > values[:, [-1]]] = -inf` of a top-k filter."""
    for node in program.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and "inf" in ast.unparse(node.value):
            where = node.targets[0].slice
            if isinstance(where, ast.Compare) and isinstance(where.ops[0], ast.Gt | ast.GtE) and re.search("logit|scor", ast.unparse(where.left)):
                yield spot(node, text=shown(node))


# --- losses over positions ---


@suspects("view of scores into classes and places")
def _view_classes(program: Program) -> Iterator[Spot]:
    """Find `cross_entropy(logits.view(batch, classes, -1), y)` of scores with the classes last."""
    for one in losses(program):
        node = one.input
        if one.kind in {"cross_entropy", "nll_loss"} and isinstance(node, ast.Call):
            if called(program, node) in {"view", "reshape"} and len(node.args) == 3 and not turns(node):
                yield spot(one.call, program.statement(one.call), text=shown(node))


@suspects("mean over masked places")
def _masked_mean(program: Program) -> Iterator[Spot]:
    """Find `(loss * mask).mean()`."""
    for call in program.calls:
        name, operand = op(program, call)
        if name == "mean" and isinstance(operand, ast.BinOp) and isinstance(operand.op, ast.Mult) and not call.args[1:]:
            sides = [ast.unparse(one) for one in (operand.left, operand.right)]
            masks = [one for one in sides if re.search(r"mask|valid|not_pad|keep$", one)]
            if masks and any(re.search(r"loss|nll|ce\b|err|entropy|\*\* 2", one) for one in sides):
                yield spot(call, text=shown(call), mask=masks[0])


@suspects("loss that knows no padding")
def _knows_none(program: Program) -> Iterator[Spot]:
    """Find cross entropy over the places of sequences in a script that pads its targets by hand."""
    pads = says(program, r"\[(PAD\w*|pad\w*|0)\] \* \(|\bPAD\b|pad_idx|PAD_IDX|<pad>|pad_id\b")
    if not pads or says(program, r"ignore_index|-100|[mM]ask|pack_padded|!= PAD|!= pad|\.ne\("):
        return
    for one in losses(program):
        text = ast.unparse(one.call)
        places = re.search(r"flatten\(0, 1\)|transpose\(1, 2\)|permute\(0, 2, 1\)|(view|reshape)\(-1, ", text)
        if one.kind == "cross_entropy" and places:
            yield spot(one.call, program.statement(one.call), text=shown(one.call))


@suspects("first step of the outputs never filled")
def _never_filled(program: Program) -> Iterator[Spot]:
    """Find a loss over all outputs of a decoder whose loop begins at 1."""
    fills = [
        loop
        for loop in program.nodes
        if isinstance(loop, ast.For) and re.match(r"range\(1, ", ast.unparse(loop.iter)) and re.search(r"outputs?\[(:, )?t\] = ", ast.unparse(loop))
    ]
    for one in losses(program) if fills else ():
        if _shift(program, one.input) is None and one.kind == "cross_entropy" and not re.search(r"\[1:|1:\]", ast.unparse(one.call)):
            yield spot(one.call, program.statement(one.call), *fills[:1], text=shown(one.call))


@suspects("perplexity to another base")
def _perplexity(program: Program) -> Iterator[Spot]:
    """Find `2 ** loss` of a loss in nats."""
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and number(node.left) == 2:
            if re.search(r"loss|nll|entropy|\bce\b", ast.unparse(node.right)) and not re.search(r"log\(2|log2", ast.unparse(node)):
                yield spot(node, text=shown(node))


# --- vocabulary and padding ---


@suspects("padding that is the end token")
def _pad_is_end(program: Program) -> Iterator[Spot]:
    """Find `pad = eos`."""
    for node in program.nodes:
        if isinstance(node, ast.Assign) and re.search(r"pad", ast.unparse(node.targets[0]).lower()):
            if re.search(r"\beos|end_token|\['eos'\]|<eos>|EOS", ast.unparse(node.value)) and not isinstance(node.value, ast.Tuple | ast.Call | ast.List | ast.Dict):
                yield spot(node, text=shown(node))


@suspects("ignored index of another token")
def _ignored(program: Program) -> Iterator[Spot]:
    """Find `ignore_index=EOS`, or 0 in a script that knows no padding."""
    for call in program.calls:
        given = argument(call, "ignore_index")
        if given is None:
            continue
        text = ast.unparse(given)
        other = re.search(r"(?i)\b(eos|bos|sos|unk|end|stop)", text)
        zero = number(given) == 0 and not says(program, r"(?i)pad|unlabel|void|background|ignore_label|zeros\(")
        if other or zero:
            yield spot(call, text=shown(call))


@suspects("padding index of another number")
def _padding_idx(program: Program) -> Iterator[Spot]:
    """Find an embedding whose padding_idx is not the number that the sequences are padded with."""
    fills = {
        number(argument(one, "padding_value", 2)) if is_given(one, "padding_value", 2) else 0.0
        for one in [*program.calls_of("pad_sequence"), *program.calls_of(".pad_sequence")]
    }
    for call in program.calls:
        given = number(argument(call, "padding_idx", 2)) if called(program, call) == "Embedding" else None
        if given is not None and fills and None not in fills and given not in fills:
            yield spot(call, text=shown(call))


@suspects("end token only looked for")
def _no_end(program: Program) -> Iterator[Spot]:
    """Find an end token that generation compares with, and that no data contain."""
    for name in ("EOS", "EOS_IDX", "eos_id", "eos_idx", "EOS_TOKEN", "eos_token", "END", "EOS_ID"):
        uses = [one for one in program.nodes if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)]
        compared = [one for one in uses if any(isinstance(node, ast.Compare) for node in program.outward(one))]
        if uses and len(compared) == len(uses):
            for one in compared[:1]:
                yield spot(program.statement(one), text=name)


@suspects("numbers of a set")
def _of_set(program: Program) -> Iterator[Spot]:
    """Find `enumerate(set(words))`, whose order differs from run to run."""
    for call in program.calls:
        if called(program, call) == "enumerate" and call.args:
            ends = [one.node for one in flow(program).ends(call.args[0])]
            text = ast.unparse(call.args[0])
            unsorted = any(re.match(r"(list\()?set\(|\{", ast.unparse(one)) for one in ends) or re.match(r"(list\()?set\(", text)
            if unsorted and "sorted" not in text and not any("sorted" in ast.unparse(one) for one in ends):
                yield spot(call, text=shown(call))


@suspects("hash of a word as its index")
def _hashed(program: Program) -> Iterator[Spot]:
    """Find `hash(word) % size`."""
    for call in program.calls_of("hash"):
        outer = program.parents.get(call)
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Mod):
            yield spot(call, text=shown(outer))


@suspects("tokens forced into the table")
def _forced_in(program: Program) -> Iterator[Spot]:
    """Find `embedding(x % n)`, `x.clamp(max=n - 1)` of indices."""
    for call in program.calls:
        held = layer(program, call.func) if call.args and isinstance(call.func, ast.Name | ast.Attribute) else None
        if held is not None and held.name == "Embedding":
            for node in ast.walk(call.args[0]):
                clamps = isinstance(node, ast.Call) and called(program, node) in {"clamp", "clip", "clamp_max"}
                if clamps or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
                    yield spot(call, text=shown(call))
                    break


# --- CTC ---


@suspects("blank that is a letter as well")
def _blank(program: Program) -> Iterator[Spot]:
    """Find CTC with the blank 0 while letters are numbered from 0."""
    for call in program.calls:
        name = last(program.names.full(call.func))
        if name not in {"CTCLoss", "ctc_loss"}:
            continue
        given = argument(call, "blank", 0 if name == "CTCLoss" else 4)
        if given is not None and number(given) != 0:
            continue
        counted = [one for one in program.calls_of("enumerate") if len(one.args) == 1 and not one.keywords]
        letters = [one for one in counted if re.search(r"(?i)char|letter|alphabet|vocab|symbol|token", ast.unparse(one.args[0]))]
        blank = says(program, r"(?i)'(<blank>|-|_|<b>|blank)'|\+ 1\b.*for|index\(.*\) \+ 1|\['-'")
        if (letters or says(program, r"randint\(0, |- ord\('a'\)(?! \+ 1)|\.index\(\w+\)(?! \+)")) and not blank:
            yield spot(call, *letters[:1], text=shown(call))


@suspects("CTC with the batch first")
def _ctc_axes(program: Program) -> Iterator[Spot]:
    """Find a CTC loss in a script that never exchanges axes."""
    if says(program, r"transpose\(0, 1|transpose\(1, 0|permute\((1|2), 0|permute\(2, |swapaxes|rearrange|\.T\b"):
        return
    firsts = {one.batch_first for one in runs(program)}
    for one in losses(program):
        if one.kind == "ctc_loss" and firsts != {False}:
            yield spot(one.call, program.statement(one.call), text=shown(one.call))


SUSPECTS = suspects_of(globals())
_ = constant, extra, names_in
