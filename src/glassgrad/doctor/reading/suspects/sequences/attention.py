"""Suspects about attention and transformers: scores, masks, heads, positions, blocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import is_op, within
from glassgrad.doctor.reading.polarity import polarity
from glassgrad.doctor.reading.program import Class, Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import calls_of, receiver, text
from glassgrad.doctor.reading.suspects.sequences.parts import TRANSFORMERS, extra, flag, inside, picks_of, says, turns
from glassgrad.doctor.reading.values import axis_of, layer, library_name, op

_PRODUCT = re.compile(r" @ |matmul\(|bmm\(|einsum\(")
_SCORES = re.compile(r"scor|attn|atten|energ|logit|weight|sim|align|alpha|dots?$|qk|wei$")
_VALUES = re.compile(
    r"\(?(\w*(attn|attention|weights?|probs?|alpha|att|a|p|w|wei)\w* @ |.*scaled_dot_product|(torch\.)?matmul\(|"
    r".*softmax\(.*@ )"
)
"""The product of weights and values."""
_KEEP = re.compile(
    r"^(attention_mask|attn_keep|keep\w*|valid\w*|real\w*|not_pad\w*|non_pad\w*|is_real|tril|causal_keep)$"
)


# --- scores ---


def softmaxes(program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls of softmax, each with its operand."""
    for call in program.calls:
        name, operand = op(program, call)
        held = layer(program, call.func) if not name and isinstance(call.func, ast.Name | ast.Attribute) else None
        if held is not None and held.name == "Softmax" and call.args:
            yield call, call.args[0]
        elif name == "softmax" and operand is not None:
            yield call, operand


def history(program: Program, node: ast.expr) -> list[ast.expr]:
    """Return an expression with those bound to its name before it in the same function."""
    found = [node]
    for _ in range(6):
        name = receiver(found[-1], program)
        names = [name] if isinstance(name, ast.Name) else within(name, ast.Name)
        named = next((one for one in names if _SCORES.search(one.id)), names[0] if len(names) == 1 else None)
        bound = program.bound(named) if named is not None else None
        if bound is None or bound.value is None or bound.value in found or bound.item is not None:
            break
        found.append(bound.value)
    return found


def _scores(program: Program, operand: ast.expr) -> str | None:
    """Return the text of all that makes the scores of an attention; None if they are no product of two tensors."""
    said = " ; ".join(text(one) for one in history(program, operand))
    product = re.search(r"(@|matmul\(|bmm\().*(transpose\(|\.mT|\.T\b|permute\()", said) or "einsum(" in said
    return said if product else None


@suspects_rows("scores not scaled", softmaxes)
def _unscaled(program: Program, call: ast.Call, operand: ast.expr) -> object:
    """Find a softmax of products of queries and keys without a scale."""
    said = _scores(program, operand)
    around = program.function(call)
    scaled = re.search(r"\*\* ?-?\(?-?0\.5|sqrt|scale|temperature|\btau\b| /=? ", text(around))
    odd = said is not None and not scaled and around is not None and not re.search(r" / | \* [a-z]", said)
    return odd and look_at(call)


@suspects_rows("scores scaled the wrong way", softmaxes)
def _wrong_scale(program: Program, call: ast.Call, operand: ast.expr) -> Iterator[Spot]:
    """Find scores multiplied by the root of the width, or divided by the width itself."""
    for node in history(program, operand):
        said = text(node)
        if not _PRODUCT.search(said) and not re.search(r"scores?|attn", said):
            continue
        up = re.search(r"\* (math\.|np\.|torch\.)?sqrt\(|\* \(?[\w.]+ \*\* 0\.5", said)
        width = r"(self\.)?(d_k|dk|head_dim|d_head|dim_head|d_model|hidden\w*|embed\w*|dim|\w+\.(shape\[|size\()-1.)"
        down = re.search(rf" / {width}\)?$", said)
        held = re.search(r"\* self\.(\w+)$", said)
        bounds = program.attribute(program.owner(call), held[1]) if held is not None else []
        root = any(re.search(r"sqrt\([^()]*\)$|\*\* 0\.5$", text(one.value)) for one in bounds if one.value)
        inverse = any("1 / " in text(one.value) or "1.0 / " in text(one.value) for one in bounds if one.value)
        if up or down or (root and not inverse):
            yield spot(program.statement(node), call, text=shown(node))
            break


@suspects_rows("scale of the whole width", softmaxes)
def _whole_width(program: Program, call: ast.Call, operand: ast.expr) -> object:
    """Find scores of heads divided by the root of the width of all heads."""
    owner = program.owner(call)
    heads = owner is not None and re.search(r"n_?heads?|num_heads|heads", text(owner.node))
    said = _scores(program, operand)
    width = r"(self\.)?(d_model|embed_dim|emb_dim|embed_size|hidden_dim|hidden_size|n_embd|emb_size|model_dim|C)\b"
    whole = re.search(rf"(sqrt\({width}\)|{width} \*\* -?\(?-?0\.5)", said or "")
    return heads and whole and look_at(call, scale=whole.group(0))


@suspects_rows("softmax along another axis than the keys", softmaxes)
def _axis(program: Program, call: ast.Call, operand: ast.expr) -> object:
    """Find a softmax of attention scores along axis 0, 1 or -2."""
    held = layer(program, call.func) if not op(program, call)[0] else None
    along = number(argument(held.call, "dim", 0) if held is not None else axis_of(program, call))
    said = _scores(program, operand)
    name = program.function(call)
    single = said is None and _of_one_output(program, operand)
    owner = getattr(program.owner(call), "node", name)
    attends = name is not None and re.search(r"tten|pool", f"{name.name} {getattr(owner, 'name', '')}")
    return (
        (along in {0, -2} and (said is not None or single or (attends and _SCORES.search(text(operand)))))
        or (along == 1 and said is not None and re.search(r"-1, -2|-2, -1|\(1, 2\)|\(2, 1\)|bmm|2, 3", said))
    ) and look_at(call)


def _of_one_output(program: Program, operand: ast.expr) -> bool:
    """Tell whether scores come from a layer with one output."""
    calls = (one for node in history(program, operand) for one in within(node, ast.Call))
    held = (layer(program, one.func) for one in calls if isinstance(one.func, ast.Name | ast.Attribute))
    linear = [one for one in held if one is not None and one.name == "Linear"]
    return any(number(argument(one.call, "out_features", 1)) == 1 for one in linear)


@suspects_rows("softmax over an axis of size one", softmaxes)
def _single(program: Program, call: ast.Call, operand: ast.expr) -> object:
    """Find a softmax along the last axis of what a layer with one output gives."""
    made = next((one for one in history(program, operand) if isinstance(one, ast.Call)), None)
    held = layer(program, made.func) if made is not None else None
    if held is not None and held.name == "Sequential" and held.call.args:
        held = layer(program, held.call.args[-1])
    if held is None or held.name != "Linear" or number(argument(held.call, "out_features", 1)) != 1:
        return False
    said = " ".join(text(one) for one in history(program, operand))
    if number(axis_of(program, call)) not in {-1, 2}:
        return False
    return not re.search(r"squeeze|view|reshape|\.T|transpose|\[", said) and look_at(call, held.call)


# --- masks ---


def _fills(program: Program) -> Iterator[tuple[ast.Call, ast.expr, ast.expr, ast.expr]]:
    """Yield the calls that fill scores in front of a softmax: the call, the scores, the mask and the filler."""
    for call in program.calls:
        name = program.called(call)
        if name in {"masked_fill", "masked_fill_"} and len(call.args) >= 2 and isinstance(call.func, ast.Attribute):
            scores = call.func.value if not program.names.full(call.func) else call.args[0]
            mask, filler = call.args[-2:]
            around = program.function(call)
            if around is not None and ("softmax" in text(around) or _SCORES.search(text(scores))):
                yield call, scores, mask, filler
        elif name == "where" and len(call.args) == 3 and re.search(r"inf|-1e\+?\d", text(call.args[1])):
            yield call, call.args[2], call.args[0], call.args[1]
        elif name == "where" and len(call.args) == 3 and _SCORES.search(text(call.args[1])):
            yield call, call.args[1], ast.UnaryOp(ast.Invert(), call.args[0]), call.args[2]


@suspects_rows("scores filled with a common number", _fills)
def _filler(program: Program, call: ast.Call, scores: ast.expr, _: ast.expr, filler: ast.expr) -> object:
    """Find `scores.masked_fill(mask, -1e-9)`, whose places take part in the softmax."""
    value = number(filler)
    said, around = text(filler), program.function(call)
    soft = re.search(r"softmax\(", text(around)) if around is not None else None
    up = re.fullmatch(r"float\('\+?inf(inity)?'\)|(np|math|torch)\.inf|\d+\.?\d*e\+?\d+", said) and soft
    low = value is not None and -50 < value < 1 and soft and _SCORES.search(text(scores))
    before = soft and _before_softmax(program, call)
    return before and (up or low) and look_at(call, filler=said)


def _before_softmax(program: Program, call: ast.Call) -> bool:
    around = program.function(call)
    for one, _ in softmaxes(program):
        if program.function(one) is around and (one.lineno > call.lineno or call in ast.walk(one)):
            return True
    return False


@suspects_rows("mask multiplied into the scores", softmaxes)
def _multiplied(program: Program, call: ast.Call, operand: ast.expr) -> Iterator[Spot]:
    """Find `scores * mask` in front of a softmax."""
    for node in history(program, operand):
        factor = node.right if is_op(node, ast.Mult) else None
        if factor is not None and re.search(r"mask|tril|valid", text(factor)) and not re.search(r"1e|inf", text(node)):
            yield spot(program.statement(node), call, text=shown(node))


@suspects_rows("mask of unclear sense", _fills)
def _sense(program: Program, call: ast.Call, _: ast.expr, mask: ast.expr, __: ast.expr) -> object:
    """Find a fill where a mask named after what it keeps is true, or where one named after padding is false."""
    said = text(mask)
    around = r"(\.bool\(\)|\.to\(\w+\.bool\)|\.byte\(\)|\.unsqueeze\([-\d]+\)|\[.*\]| (==|!=) .*|^~|^not )"
    name = re.sub(around, "", said)
    name = name.removeprefix("self.")
    turned = "~" in said or bool(re.search(r" == (0|False)$| != (1|True)$|logical_not|^1 - ", said))
    ones = re.search(r" == (1|True)$", said)
    drops = re.search(r"^(pad\w*mask|padding\w*|is_pad\w*|key_padding_mask|future\w*|\w*_pad_mask)$", name)
    causal = program.called(call) == "where" and not turned and polarity(program, mask) == "keep"
    odd = causal or (_KEEP.match(name) and not turned) or (drops and turned) or (ones and not drops and not turned)
    return odd and look_at(call)


@suspects_each("padding mask of what to keep", ast.Call)
def _key_mask(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `key_padding_mask=mask` whose name or value tells that it is true at real tokens."""
    for name in ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"):
        given = argument(call, name)
        if given is None:
            continue
        said = text(given)
        ends = " ; ".join(text(one.node) for one in flow(program).ends(given))
        plain = re.sub(r"(\.bool\(\)|\.to\(\w+\.bool\))+$", "", said)
        real = r"(> 0|!= (0|\w*pad\w*|PAD\w*)|\.ne\(|< \w*len\w*.*)\)*(\.bool\(\))?$"
        keeps = _KEEP.match(plain) or re.search(real, ends)
        if keeps and not re.search(r"~|== |logical_not|\.eq\(", said + ends):
            yield spot(call, text=f"{name}={said}")


@suspects_rows("mask over queries instead of keys", _fills)
def _rows(program: Program, call: ast.Call, scores: ast.expr, mask: ast.expr, _: ast.expr) -> object:
    """Find scores filled by a padding mask with its new axis at the end."""
    product = _scores(program, scores) is not None
    texts = [text(one) for one in history(program, mask)]
    behind = r"\.unsqueeze\((-1|3)\)( == 0)?\)?$|\[\.\.\., None\]|\[:, :, None\]$|\[:, None, :, None\]"
    rows = [one for one in texts if re.search(behind, one)]
    return product and rows and not any("&" in one or " * " in one for one in texts) and look_at(call)


@suspects_each("triangle off by one", ast.Call)
def _triangle(program: Program, call: ast.Call) -> object:
    """Find `triu(ones)` with the diagonal, or `tril(ones, -1)` without it."""
    name = program.called(call).rstrip("_")
    if name not in {"triu", "tril"} or not re.search(r"ones|full\(", text(call)):
        return False
    given = extra(program, call, "diagonal") or argument(call, "k", 1)
    diagonal = 0.0 if given is None else number(given)
    outer = [text(one) for one in program.outward(call) if isinstance(one, ast.expr)]
    turned = any(re.search(r"== 1|\)\.transpose|\)\.T\b|\.t\(\)", one) for one in outer)
    attends = says(program, r"softmax|MultiheadAttention|Transformer|scaled_dot|mask")
    near = text(program.statement(call)) + " ".join(outer)
    meant = re.search(r"mask|causal|tri\b|future|past|bias|register_buffer", near)
    odd = attends and meant and not turned and diagonal == (0 if name == "triu" else -1)
    return odd and look_at(call, program.statement(call))


@suspects("padding is attended to")
def _attended(program: Program) -> Iterator[Spot]:
    """Find a transformer without any mask in a script that pads its sequences."""
    if not says(program, r"pad_sequence|padding_idx|<pad>|\bPAD\b|\bpad_idx\b|\bPAD_IDX\b"):
        return
    for call in program.calls:
        held = layer(program, call.func)
        if held is None or held.owner is not None or held.name not in TRANSFORMERS | {"MultiheadAttention"}:
            continue
        masked = any(one.arg is None or "padding_mask" in one.arg for one in call.keywords)
        if not masked and len(call.args) <= (3 if held.name == "MultiheadAttention" else 2):
            yield look_at(call)


# --- heads ---


_HEADS = re.compile(r"^(self\.)?(n_?)?(num_)?(heads?|h|nh|n_head|nhead|num_attention_heads|H)$")


def _sizes(call: ast.Call) -> list[str]:
    given = call.args[0].elts if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple) else call.args
    return [text(one) for one in given]


@suspects_each("heads split before the time", calls_of(".view", ".reshape"))
def _split(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `q.view(batch, heads, time, width)` of what lies in the order of batch, time, width."""
    sizes = _sizes(call)
    inner = text(call.func)
    source = re.match(r"(self\.\w+\(|(q|k|v|x|qkv|quer\w+|keys?|values?|Q|K|V|h)\.)", inner)
    if len(sizes) != 4 or not source or not _HEADS.match(sizes[1]):
        return
    if not re.search(r"transpose|permute|repeat|expand|stack", inner):
        owner = program.owner(call)
        if owner is None or re.search(r"ttention|Attn|Head|Block|Transformer|softmax", text(owner.node)):
            yield look_at(call)


@suspects_each("heads joined without a transpose", calls_of(".view", ".reshape", ".flatten"))
def _joined(program: Program, call: ast.Call) -> object:
    """Find `(weights @ v).reshape(b, t, c)` where the heads still stand before the time."""
    function = program.function(call)
    if function is None or not isinstance(call.func, ast.Attribute) or program.called(call) == "flatten":
        return False
    said = text(function)
    four = re.search(r"(view|reshape)\([^()]*,[^()]*,[^()]*,[^()]*\)|(transpose\(1, 2\)|permute\(0, 2, 1, 3\))", said)
    made = history(program, call.func.value)
    product = isinstance(made[-1], ast.BinOp | ast.Call) and _VALUES.match(text(made[-1]))
    back = any(re.search(r"transpose\(1, 2\)|permute\(0, 2, 1|swapaxes|rearrange", text(one)) for one in made)
    return four and len(_sizes(call)) == 3 and product and not back


@suspects_each("same layer for two of query, key and value", Program.modules)
def _same_layer(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `k = self.key(x); v = self.key(x)`."""
    for function in owner.methods.values():
        seen: dict[str, str] = {}
        for node in inside(program, function, ast.Assign):
            pairs = [(node.targets[0], node.value)]
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(node.targets[0].elts, node.value.elts, strict=False))
            for target, value in pairs:
                name = text(target).lower().strip("_")
                layers = re.findall(r"self\.(\w+)\(", text(value))
                if not re.fullmatch(r"q|k|v|qs|ks|vs|query|key|value|queries|keys|values", name) or not layers:
                    continue
                if seen.get(layers[0], name[0]) != name[0] and re.search(r"[qkv]", layers[0]):
                    yield spot(value, text=shown(node))
                seen.setdefault(layers[0], name[0])


@suspects_each("cross-attention without its memory", ast.Call)
def _cross(program: Program, call: ast.Call) -> object:
    """Find `self.cross(x, x, x)`, or one whose queries come from the encoder."""
    name = program.called(call).lower()
    if not re.search(r"cross|enc_?dec|encoder_attn|src_attn|enc_attn", name) or len(call.args) < 2 or "entropy" in name:
        return False
    given = [text(one) for one in call.args[:3]]
    memory = r"mem|enc|src|context|ctx"
    alike = len(given) == 3 and len(set(given)) == 1 and not re.search(memory, given[0])
    turned = re.match(memory, given[0]) and not re.match(memory, given[1])
    return alike or (turned and len(given) == 3)


@suspects_each("attention weights taken as its output", ast.Call)
def _weights(program: Program, call: ast.Call) -> object:
    """Find `_, x = self.attention(x, x, x)` or `self.attention(x, x, x)[1]` of nn.MultiheadAttention."""
    held = layer(program, call.func)
    if held is None or held.name != "MultiheadAttention" or held.owner is not None:
        return False
    outer, statement = program.parents.get(call), program.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    second = isinstance(outer, ast.Subscript) and constant(outer.slice) == 1
    pair = isinstance(target, ast.Tuple) and len(target.elts) == 2
    odd = second or (pair and isinstance(target, ast.Tuple) and text(target.elts[0]) in {"_", "__"})
    return odd and spot(call, text=shown(statement))


# --- axes and pooling ---


def _first(program: Program, call: ast.Call, depth: int = 0) -> bool | None:
    """Tell whether a transformer layer takes the batch first."""
    coder = depth < 3 and call.args and library_name(program, call).endswith("coder")
    held = layer(program, call.args[0]) if coder else None
    return flag(program, call, "batch_first") if held is None else _first(program, held.call, depth + 1)


@suspects_each("transformer along the batch", ast.Call)
def _along(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find a transformer layer without batch_first in a class that never exchanges axes."""
    name = library_name(program, call)
    if name not in {"TransformerEncoderLayer", "TransformerDecoderLayer", "MultiheadAttention", "Transformer"}:
        return
    owner = program.owner(call)
    if flag(program, call, "batch_first") is False and not (owner is not None and turns(owner.node)):
        around = text(owner.node if owner is not None else program.tree)
        reads = re.search(r"\[:, (-1|0)|(mean|sum)\((dim=)?1\)|size\(1\)|shape\[1\]|batch", around)
        if reads and not re.search(r"stack\(|seq_first|# \(?[ST],", around):
            yield look_at(call)


@suspects_each("batch-first outputs pooled over the batch", ast.Call)
def _pooled(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `encoder(x)[0]`, `[-1]` or `.mean(0)` of a transformer with the batch first."""
    held = layer(program, call.func)
    known = held is not None and held.owner is None and held.name in TRANSFORMERS
    statement, around = program.statement(call), program.function(call)
    if held is None or not known or _first(program, held.call) is not True or around is None:
        return
    if not isinstance(statement, ast.Assign) or turns(around):
        return
    names = frozenset({text(statement.targets[0])})
    for node, axis, index in picks_of(program, around, call, names):
        if axis == 0 and index in {0, -1} and isinstance(node.slice, ast.Constant | ast.UnaryOp | ast.Tuple):
            yield look_at(node, held.call)
    for pooled in inside(program, around, ast.Call):
        if program.called(pooled) in {"mean", "sum", "amax"} and pooled.lineno > call.lineno:
            operand = op(program, pooled)[1]
            if operand is not None and text(operand) in names and number(axis_of(program, pooled)) == 0:
                yield look_at(pooled, held.call)


@suspects_each("first position under a causal mask", Program.modules)
def _causal_first(program: Program, owner: Class) -> Iterator[Spot]:
    """Find `x[:, 0]` of an encoder whose mask is causal: the first place has seen itself only."""
    function = owner.methods.get("forward")
    said = text(owner.node)
    if function is None or not re.search(r"is_causal=True|generate_square_subsequent_mask|tril\(", said):
        return
    for node in ast.walk(function):
        read = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        if read and re.fullmatch(r"(x|h|out|output|hidden|encoded|z)\[:, 0(, :)?\]", text(node)):
            assert isinstance(node, ast.Subscript)
            yield look_at(node)
