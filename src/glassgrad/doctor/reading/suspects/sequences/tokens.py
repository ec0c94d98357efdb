"""Suspects about tokens and targets: positions, shifts, padding, vocabularies, losses over sequences, generation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import both_ways, indices, is_op, within
from glassgrad.doctor.reading.program import Class, Function, Program, argument, is_given, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import calls_of, functions, text
from glassgrad.doctor.reading.suspects.sequences.parts import firsts, inside, says
from glassgrad.doctor.reading.values import layer

_TABLE = re.compile(r"(^|[._])(pe|pos|positions?|position\w*|pos_\w+|\w*pos_?e\w*|wpe|places?)$", re.IGNORECASE)


# --- positions ---


def _tables(program: Program) -> Iterator[ast.Subscript]:
    """Yield the subscripts of tables of positions."""
    for node in program.every(ast.Subscript):
        if not isinstance(node.ctx, ast.Load):
            continue
        if isinstance(node.value, ast.Name | ast.Attribute) and _TABLE.search(text(node.value)):
            yield node


@suspects_each("one row of the positions", _tables)
def _one_row(program: Program, node: ast.Subscript) -> Iterator[Spot]:
    """Find `self.pe[:, x.size(1)]`, which takes one row instead of those up to it."""
    for part in indices(node):
        if isinstance(part, ast.Slice):
            continue
        if re.search(r"\.(size\(\d\)|shape\[\d\])$|^len\(|^(seq_len|T|t_len|length)$", text(part)):
            yield look_at(node)


@suspects("positions along the batch")
def _along_batch(program: Program) -> Iterator[Spot]:
    """Find `self.pe[:x.size(0)]` or `arange(x.size(0))` in a script with the batch first."""
    known = firsts(program)
    by_first = r"\w+\.(size\((dim=)?0\)|shape\[0\])|len\(x\)"
    for node in _tables(program):
        first = indices(node)[0]
        upper = text(first.upper) if isinstance(first, ast.Slice) and first.upper is not None else ""
        second = indices(node)[1:2]
        later = re.fullmatch(rf":({by_first})", text(second[0])) if second else None
        owner = program.owner(node)
        turned = owner is not None and re.search(r"transpose\(0, 1|permute\(1, 0, 2", text(owner.node))
        if later or (re.fullmatch(by_first, upper) and known == {True} and not turned):
            yield look_at(node)
    for call in [one for one in program.calls if program.called(one) == "arange"]:
        outer = program.statement(call)
        if not (len(call.args) == 1 and re.fullmatch(by_first, text(call.args[0])) and "pos" in text(outer).lower()):
            continue
        if True in known and program.function(call) is not None:
            yield look_at(call)


@suspects_each("positions looked up by tokens", Program.modules)
def _by_tokens(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `self.position(x)` of an embedding that gets the same tokens as the embedding of words."""
    calls = within(owner.methods.get("forward") or ast.Pass(), ast.Call)
    made = [(one, held) for one in calls if (held := layer(program, one.func)) is not None and held.name == "Embedding"]
    for call, _ in made:
        if not re.search(r"pos|wpe|place", text(call.func)) or len(call.args) != 1:
            continue
        said = text(call.args[0])
        others = [one for one, _ in made if one is not call and text(one.func) != text(call.func)]
        if any(text(one.args[0]) == said for one in others if one.args):
            yield look_at(call)


@suspects("attention without positions")
def _no_positions(program: Program) -> Iterator[Spot]:
    """Find a transformer over embedded tokens in a script that never speaks of positions."""
    if says(
        program,
        r"(?i)pos|\bpe\b|rope|rotary|alibi|place|time_emb|order_emb|sinus|torch\.sin|wpe|slots?|LSTM|GRU|conv1d|tril",
    ):
        return
    for call in program.calls:
        held = layer(program, call.func)
        known = held is not None and held.owner is None and held.name in {"TransformerEncoder", "Transformer"}
        if known and says(program, r"Embedding\(") and program.owner(call) is not None:
            yield look_at(call)


@suspects("formula of the positions")
def _sinusoids(program: Program) -> Iterator[Spot]:
    """Find the same function for even and odd places, or frequencies that grow instead of fall."""
    waves: dict[ast.AST, list[tuple[ast.Assign, str]]] = {}
    for node in program.nodes:
        if (
            (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Subscript)
                and isinstance(node.value, ast.Call)
            )
            and re.search(r"[01]::2", text(node.targets[0]))
            and program.called(node.value) in {"sin", "cos"}
        ):
            waves.setdefault(program.around(node), []).append((node, program.called(node.value)))
    for around, found in waves.items():
        if len(found) == 2 and found[0][1] == found[1][1]:
            yield look_at(found[1][0])
        for node in inside(program, around, ast.Assign):
            if re.search(r"exp\(.*log\(10000", text(node.value)):
                divides = any(re.search(rf"/ {text(node.targets[0])}\b", text(one)) for one, _ in found)
                if "-" not in text(node.value) and not divides:
                    yield look_at(node)


@suspects_each("positions not added", operations(ast.Mult | ast.Add))
def _not_added(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find positions multiplied into the embeddings, or added twice: by the module and by its caller."""
    for side, other in both_ways(node):
        table = isinstance(side, ast.Subscript | ast.Call) and text(side).startswith("self.")
        if not table or not _TABLE.search(
            text(side.func if isinstance(side, ast.Call) else getattr(side, "value", side))
        ):
            continue
        if isinstance(node.op, ast.Mult) and not isinstance(other, ast.Constant) and number(other) is None:
            if isinstance(other, ast.Name | ast.Call) and not re.search(r"sqrt|scale|alpha|len", text(other)):
                yield look_at(node)
        elif (
            isinstance(node.op, ast.Add)
            and isinstance(side, ast.Call)
            and _adds_itself(program, side)
            and [text(one) for one in side.args[:1]] == [text(other)]
        ):
            yield look_at(node)


def _adds_itself(program: Program, call: ast.Call) -> bool:
    held = layer(program, call.func)
    method = program.method(held.owner, "forward") if held is not None else None
    if method is None or len(method.args.args) < 2:
        return False
    name = method.args.args[1].arg
    return bool(re.search(rf"\b{name} \+ |return .*\b{name} \+|{name} \+= ", text(method)))


@suspects_each("embeddings divided by a root", operations(ast.Div))
def _divided(program: Program, node: ast.BinOp) -> object:
    """Find `self.embed(x) / math.sqrt(d)`."""
    if not isinstance(node.left, ast.Call):
        return False
    held = layer(program, node.left.func)
    return held is not None and held.name == "Embedding" and re.search(r"sqrt|\*\* 0\.5", text(node.right))


@suspects_each("rotation of halves", functions)
def _halves(program: Program, function: Function) -> Iterator[Spot]:
    """Find `cat((x2, -x1))` or `cat((x2, x1))` in a rotation of positions."""
    for call in inside(program, function, ast.Call) if re.search(r"rotat|rope", function.name) else ():
        if program.called(call) not in {"cat", "concat", "stack"} or not call.args:
            continue
        pair = call.args[0].elts if isinstance(call.args[0], ast.Tuple | ast.List) else []
        if len(pair) != 2 or not all(re.fullmatch(r"-?\w+(\[.*\])?", text(one)) for one in pair):
            continue
        if "half" in function.name and not isinstance(pair[0], ast.UnaryOp):
            yield look_at(call)


# --- decoding ---


@suspects_each("cache behind the new step", ast.Call)
def _cache(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `cat([k, past_k])` of a cache of keys and values."""
    pair = call.args[0] if program.called(call) in {"cat", "concat", "concatenate"} and call.args else None
    if isinstance(pair, ast.Tuple | ast.List) and len(pair.elts) == 2:
        first, second = (text(one) for one in pair.elts)
        old = r"past|cache|prev|\bold"
        if not re.search(old, second) or re.search(old, first):
            return
        if re.fullmatch(r"(new_)?([kv]|keys?|values?)(_new|_t)?", first):
            yield look_at(call)


@suspects_each("teacher forcing turned round", ast.IfExp)
def _teacher(program: Program, node: ast.IfExp) -> object:
    """Find `top if teacher_force else target[t]`."""
    if not re.search(r"teacher|forc|\btf\b", text(node.test)):
        return False
    body, other = text(node.body), text(node.orelse)
    true = r"trg|tgt|target|\by\b|truth|label|gold"
    return not re.search(true, body) and re.search(true, other) and not re.search(r"not |>", text(node.test))


@suspects_each("teacher forcing in the evaluation", Program.modules)
def _forced(program: Program, owner: Class) -> Iterator[Spot]:
    """Find a model with teacher forcing by default, evaluated with the targets and without turning it off."""
    forward = owner.methods.get("forward")
    names = [one.arg for one in forward.args.args] if forward is not None else []
    ratio = next((one for one in names if re.search(r"teacher|forcing|tf_ratio", one)), None)
    if forward is None or ratio is None or "self.training" in text(forward):
        return
    place = names.index(ratio) - 1
    for call in program.calls:
        held = layer(program, call.func)
        if held is None or held.owner is not owner or is_given(call, ratio, place) or len(call.args) < 2:
            continue
        around = [text(one.items[0]) for one in program.outward(call) if isinstance(one, ast.With)]
        function = program.function(call)
        measured = any("no_grad" in one or "inference" in one for one in around)
        decorated = function is not None and any("no_grad" in text(one) for one in function.decorator_list)
        if measured or decorated or (function is not None and re.search(r"eval|valid|test", function.name)):
            yield look_at(call, ratio=ratio)


@suspects("first place of the scores")
def _first_place(program: Program) -> Iterator[Spot]:
    """Find `logits[:, 0]` in a loop that appends tokens."""
    for node in program.nodes:
        loops = program.loops(node) if isinstance(node, ast.Subscript) else []
        if loops and re.fullmatch(r"(logits|scores|out|output|outputs|preds?|y_hat)\[(:, 0(, :)?|0, 0)\]", text(node)):
            said = text(loops[0])
            if re.search(r"cat\(|append\(", said) and "backward(" not in said and isinstance(node, ast.Subscript):
                yield look_at(node)


@suspects_each("wrong side of the cut", ast.Assign)
def _wrong_side(program: Program, node: ast.Assign) -> object:
    """Find `logits[logits > values[:, [-1]]] = -inf` of a top-k filter."""
    if not isinstance(node.targets[0], ast.Subscript) or "inf" not in text(node.value):
        return False
    where = node.targets[0].slice
    if not isinstance(where, ast.Compare) or not isinstance(where.ops[0], ast.Gt | ast.GtE):
        return False
    return re.search("logit|scor", text(where.left))


# --- vocabulary and padding ---


@suspects_each("padding that is the end token", ast.Assign)
def _pad_is_end(program: Program, node: ast.Assign) -> object:
    """Find `pad = eos`."""
    ends = re.search(r"\beos|end_token|\['eos'\]|<eos>|EOS", text(node.value))
    plain = not isinstance(node.value, ast.Tuple | ast.Call | ast.List | ast.Dict)
    return ends and plain and "pad" in text(node.targets[0]).lower()


@suspects_each("ignored index of another token", ast.Call)
def _ignored(program: Program, call: ast.Call) -> object:
    """Find `ignore_index=EOS`, or 0 in a script that knows no padding."""
    given = argument(call, "ignore_index")
    if given is None:
        return False
    said = text(given)
    other = re.search(r"(?i)\b(eos|bos|sos|unk|end|stop)", said)
    numbered = says(program, r"enumerate\(\w+(\(.*\))?\)\}")
    zero = number(given) == 0 and numbered
    zero = zero and not says(program, r"(?i)pad|unlabel|void|background|ignore_label|zeros\(")
    return other or zero


@suspects("padding index of another number")
def _padding_idx(program: Program) -> Iterator[Spot]:
    """Find an embedding whose padding_idx is not the number that the sequences are padded with."""
    pads = [*program.calls_of("pad_sequence"), *program.calls_of(".pad_sequence")]
    values = [
        argument(one, "padding_value", 2) if is_given(one, "padding_value", 2) else ast.Constant(0) for one in pads
    ]
    fills = {number(one) for one in values}
    for call in program.calls:
        given = number(argument(call, "padding_idx", 2)) if program.called(call) == "Embedding" else None
        if given is not None and fills and None not in fills and given not in fills:
            yield look_at(call)


@suspects("end token only looked for")
def _no_end(program: Program) -> Iterator[Spot]:
    """Find an end token that generation compares with, and that no data contain."""
    for name in ("EOS", "EOS_IDX", "eos_id", "eos_idx", "EOS_TOKEN", "eos_token", "END", "EOS_ID"):
        uses = program.every(ast.Name)
        uses = [one for one in uses if one.id == name and isinstance(one.ctx, ast.Load)]
        compared = [one for one in uses if any(isinstance(node, ast.Compare) for node in program.outward(one))]
        numbers = [one.value for one in program.bindings(program.tree, name)]
        known = numbers and all(isinstance(one, ast.Constant) for one in numbers)
        if uses and known and len(compared) == len(uses):
            yield from (spot(program.statement(one), text=name) for one in compared[:1])


@suspects_each("numbers of a set", ast.Call)
def _of_set(program: Program, call: ast.Call) -> object:
    """Find `enumerate(set(words))`, whose order differs from run to run."""
    if program.called(call) != "enumerate" or not call.args:
        return False
    ends = [one.node for one in flow(program).ends(call.args[0])]
    said = text(call.args[0])
    unsorted = any(re.match(r"(list\()?set\(|\{", text(one)) for one in ends) or re.match(r"(list\()?set\(", said)
    return unsorted and "sorted" not in said and not any("sorted" in text(one) for one in ends)


@suspects_each("vocabulary of the test texts", ast.Call)
def _second_vocabulary(program: Program, call: ast.Call) -> object:
    """Find a vocabulary built from the texts of the test beside the one of the training."""
    name = program.called(call)
    given = text(call.args[0]) if call.args else ""
    builds = re.search(r"(build|make|create|get)_?(vocab|dict|index|lookup|word)|^Vocab\w*$|fit_on_texts", name)
    return builds and re.match(r"(self\.)?(x_)?(test|val|dev)", given)


@suspects("unknown words share the padding")
def _unknown(program: Program) -> Iterator[Spot]:
    """Find `index.get(word, 0)` where 0 is the padding."""
    if not says(program, r"padding_idx=0|PAD = 0|'<pad>': 0|padding_value=0|pad_idx = 0|ignore_index=0"):
        return
    for call in program.calls_of(".get"):
        if len(call.args) != 2 or number(call.args[1]) != 0:
            continue
        if re.search(r"vocab|index|idx|stoi|dict|ids|2i", text(call.func)):
            yield look_at(call)


@suspects_each("pretrained vectors stay as they are", calls_of(".from_pretrained"))
def _pretrained(program: Program, call: ast.Call) -> object:
    """Find `nn.Embedding.from_pretrained(vectors)` without freeze=False."""
    table = isinstance(call.func, ast.Attribute) and text(call.func.value).endswith("Embedding")
    return table and not is_given(call, "freeze", 1) and "requires_grad = True" not in text(program.tree)


@suspects_each("tokens as numbers", calls_of(".float"))
def _numbers(program: Program, call: ast.Call) -> object:
    """Find `tokens.float()` that goes into the model."""
    said = text(call.func)
    tokens = re.match(r"(self\.)?(tokens?|token_ids|input_ids|word_ids|char_ids|words|chars|ids|src)\b", said)
    outer = program.parents.get(call)
    counted = isinstance(outer, ast.Compare | ast.BinOp | ast.Attribute) or re.search(r"==|!=|mask|one_hot|emb", said)
    return tokens and not counted


@suspects_each("hash of a word as its index", calls_of("hash"))
def _hashed(program: Program, call: ast.Call) -> object:
    """Find `hash(word) % size`."""
    outer = program.parents.get(call)
    return is_op(outer, ast.Mod) and spot(call, text=shown(outer))


@suspects_each("tokens forced into the table", ast.Call)
def _forced_in(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `embedding(x % n)`, `x.clamp(max=n - 1)` of indices."""
    held = layer(program, call.func) if call.args and isinstance(call.func, ast.Name | ast.Attribute) else None
    if held is not None and held.name == "Embedding":
        for node in ast.walk(call.args[0]):
            clamps = program.called(node) in {"clamp", "clip", "clamp_max"}
            if clamps or (is_op(node, ast.Mod)):
                yield look_at(call)
                break
