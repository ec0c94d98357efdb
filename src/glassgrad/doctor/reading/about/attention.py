"""Rules about attention and sequences: masks, padding, axes and targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.polarity import is_padding, kind, polarity
from glassgrad.doctor.reading.program import Class, Program, argument, constant, is_given, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import layer, library_name, losses, op

_ENCODERS = frozenset({"TransformerEncoder", "TransformerEncoderLayer"})
_ATTENDING = _ENCODERS | {"MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer"}
_MASKED = re.compile(r"mask|tril|triu|causal|lengths?$|pack_padded|ignore_index|valid|keep|real", re.IGNORECASE)


# --- masks ---


@reads("mask inverted")
def _inverted(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        found = _mask_of(program, call)
        if found is None:
            continue
        mask, wanted, what = found
        said = polarity(program, mask)
        if said and said != wanted:
            ends = [one.node for one in flow(program).ends(mask)]
            places = "what is to be left out" if said == "drop" else "what is to be kept"
            also = [program.statement(one) for one in ends]
            yield spot(call, mask, *also, text=shown(mask), places=places, what=what)


def _mask_of(program: Program, call: ast.Call) -> tuple[ast.expr, str, str] | None:
    """Return the mask argument of a call, what true means in it ("keep" or "drop"), and the reason in words."""
    name = library_name(program, call) or getattr(call.func, "attr", "")
    if name == "scaled_dot_product_attention":
        mask = argument(call, "attn_mask", 3)
        if mask is not None and kind(program, mask) == "bool":
            return mask, "keep", "scaled_dot_product_attention attends to the places that are true"
        return None
    if name in {"masked_fill", "masked_fill_"} and len(call.args) >= 2:
        mask, filler = call.args[-2:]
        return (mask, "drop", "masked_fill replaces the places that are true") if _is_low(program, filler) else None
    if name == "where" and len(call.args) == 3 and _is_low(program, call.args[2]):
        return call.args[0], "keep", "where keeps the scores of the places that are true"
    held = layer(program, call.func)
    if held is not None and held.name in _ATTENDING and held.owner is None:
        for key in ("attn_mask", "mask", "key_padding_mask", "src_mask", "src_key_padding_mask", "tgt_mask"):
            mask = argument(call, key)
            if mask is not None and kind(program, mask) == "bool":
                return mask, "drop", f"nn.{held.name} leaves out the places that are true"
    return None


def _is_low(program: Program, node: ast.expr) -> bool:
    """Tell whether a number is minus infinity or a large negative number."""
    text = ast.unparse(node)
    value = setting(program, node)
    return "-inf" in text or bool(re.search(r"-\s*\w+\.inf|finfo.*min", text)) or (value is not None and value <= -1e4)


# --- targets seen ---


@reads("targets seen by the model")
def _seen(program: Program) -> Iterator[Spot]:
    """Find models of the next token whose attention has no mask, or a mask that is off by one."""
    yield from _late_masks(program)
    words = {getattr(node, "attr", getattr(node, "id", getattr(node, "arg", ""))) for node in program.nodes}
    limited = any(isinstance(word, str) and re.search(r"mask|tril|triu|causal|inf$", word) for word in words)
    for one in losses(program):
        if one.kind != "cross_entropy" or one.target is None:
            continue
        place = _attention(program) if not limited and _next_tokens(program, one.input, one.target) else None
        if place is not None:
            what = f"and no mask keeps the attention of {shown(place)} from what comes later"
            yield spot(place, program.statement(place), one.call, what=what)
            return
        if limited and _same_tokens(program, one.input, one.target):
            what = f"and {shown(one.target)} is the input itself, with no place between"
            yield spot(one.call, program.statement(one.call), what=what)
            return


def _late_masks(program: Program) -> Iterator[Spot]:
    """Find `tril(ones, diagonal=1)` and `triu(ones, diagonal=2)`, which let each position see the next one."""
    for call in program.calls:
        full = program.names.full(call.func)
        name = last(full) or getattr(call.func, "attr", "")
        diagonal = number(argument(call, "diagonal", 1 if full else 0)) if name in {"tril", "triu"} else None
        limit = 1 if name == "tril" else 2
        if diagonal == limit and "ones" in ast.unparse(call) and any(_attends(program, one) for one in program.calls):
            yield spot(
                call, program.statement(call), what=f"and the mask {shown(call)} lets each place see the next one"
            )


def _attends(program: Program, call: ast.Call) -> bool:
    name, operand = op(program, call)
    return name == "scaled_dot_product_attention" or (
        name == "softmax" and operand is not None and _is_scores(program, _unmasked(program, operand))
    )


def _unmasked(program: Program, node: ast.expr) -> ast.expr:
    """Return scores without their mask."""
    one = flow(program).end(node)
    made = one.node if one is not None else None
    masked = isinstance(made, ast.Call) and getattr(made.func, "attr", "") == "masked_fill"
    return made.func.value if masked and isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) else node


def _same_tokens(program: Program, output: ast.expr, target: ast.expr) -> bool:
    """Tell whether a target is the unshifted input of a model of tokens."""
    embeds = any(library_name(program, one) == "Embedding" for one in program.calls)
    wanted = _plain(target)
    given = [_plain(arg) for call in _called(program, output) if isinstance(call, ast.Call) for arg in call.args[:1]]
    return embeds and bool(wanted) and wanted in given


def _plain(node: ast.expr) -> str:
    """Return the variable in `x.view(-1)` and similar calls; empty for a slice or another expression."""
    while isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"view", "reshape", "flatten", "contiguous"}:
        assert isinstance(node.func, ast.Attribute)
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""


def _next_tokens(program: Program, output: ast.expr, target: ast.expr) -> bool:
    """Tell whether a target is the input of the model shifted by one."""
    source = _slice_of(program, target, True)
    given = [
        _slice_of(program, arg, False)
        for end in _called(program, output)
        for arg in (end.args if isinstance(end, ast.Call) else [])
    ]
    return source is not None and any(one == source for one in given if one is not None)


def _called(program: Program, node: ast.expr) -> Iterator[ast.expr]:
    """Yield the calls of models that compute a value, without entering them."""
    seen = 0
    waiting: list[ast.expr] = [node]
    while waiting and seen < 12:
        one, seen = waiting.pop(), seen + 1
        if isinstance(one, ast.Name):
            bound = program.bound(one)
            waiting += [bound.value] if bound is not None and bound.value is not None else []
        elif isinstance(one, ast.Call):
            if layer(program, one.func) is not None:
                yield one
            elif isinstance(one.func, ast.Attribute) and not program.names.full(one.func):
                waiting.append(one.func.value)
        elif isinstance(one, ast.Subscript):
            waiting.append(one.value)


def _slice_of(program: Program, node: ast.expr, later: bool) -> str | None:
    """Return the text of x for `x[:, 1:]` or `x[1:]`; with `earlier`, for `x[:, :-1]` or `x[:-1]`."""
    for _ in range(6):
        if isinstance(node, ast.Name):
            bound = program.bound(node)
            if bound is None or bound.value is None or bound.item is not None:
                return None
            node = bound.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not program.names.full(node.func):
            node = node.func.value
        else:
            break
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    cut = parts[-1]
    if not isinstance(cut, ast.Slice):
        return None
    low, high = number(cut.lower), number(cut.upper)
    right = (low == 1 and cut.upper is None) if later else (high == -1 and cut.lower is None)
    return ast.unparse(node.value) if right else None


def _attention(program: Program) -> ast.expr | None:
    """Return the unmasked attention of a script."""
    for call in program.calls:
        name, operand = op(program, call)
        if name == "softmax" and operand is not None and _is_scores(program, operand):
            return call
        if (
            name == "scaled_dot_product_attention"
            and not is_given(call, "attn_mask", 3)
            and not is_given(call, "is_causal", 5)
        ):
            return call
        held = layer(program, call.func)
        if held is not None and held.owner is None and held.name in _ENCODERS | {"MultiheadAttention"}:
            return call
    return None


def _is_scores(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the product of queries and transposed keys."""
    ends = flow(program).ends(node)
    return any(
        "transpose" in text or ".mT" in text or "einsum" in text
        for text in (ast.unparse(one.node) for one in ends if _product(program, one.node))
    )


def _product(program: Program, node: ast.expr) -> bool:
    return any(
        (isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult))
        or (
            isinstance(one, ast.Call)
            and (library_name(program, one) or getattr(one.func, "attr", "")) in {"matmul", "bmm", "einsum"}
        )
        for one in ast.walk(node)
    )


@reads("softmax along the wrong axis")
def _wrong_axis(program: Program) -> Iterator[Spot]:
    """Find a softmax of scores `q @ k.transpose(-2, -1)` along an axis other than the last."""
    for call in program.calls:
        name, operand = op(program, call)
        if name != "softmax" or operand is None:
            continue
        along = number(argument(call, "dim", 1 if program.names.full(call.func) else 0))
        ends = [one.node for one in flow(program).ends(operand)]
        transposed = [axes for one in ends if _product(program, one) for axes in _transposed(one)]
        if along is None or len(transposed) != 1:
            continue
        first, second = sorted(transposed[0])
        axes = 0 if second < 0 else second + 1
        wrong = along in {0, -2} if axes == 0 else along in {0, -2, *range(axes - 1)}
        if wrong and not (along == 0 and first < 0 and axes == 0 and not _many(program, call)):
            yield spot(call, program.statement(call), text=shown(call))


def _many(program: Program, call: ast.Call) -> bool:
    """Tell whether the enclosing function unpacks a shape of at least three axes."""
    around = program.function(call)
    for node in ast.walk(around) if around is not None else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if (
            isinstance(target, ast.Tuple)
            and isinstance(node, ast.Assign)
            and re.search(r"\.shape|\.size\(\)", ast.unparse(node.value))
        ):
            return len(target.elts) > 2
    return False


def _transposed(node: ast.expr) -> Iterator[tuple[int, int]]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and getattr(one.func, "attr", "") == "transpose":
            axes = [constant(arg) if isinstance(constant(arg), int) else None for arg in one.args[-2:]]
            if len(axes) == 2 and all(isinstance(axis, int) for axis in axes):
                yield int(str(axes[0])), int(str(axes[1]))


# --- axes of sequences ---


@reads("attention across the batch")
def _across(program: Program) -> Iterator[Spot]:
    """Find a layer that takes the sequence first, while the script reads its result with the batch first."""
    for owner in program.modules():
        forward = owner.methods.get("forward")
        for call in ast.walk(forward) if forward is not None else ():
            held = modules(program, call.func) if isinstance(call, ast.Call) and call.args else None
            if not isinstance(call, ast.Call) or held is None or len(held) != 1:
                continue
            made = _made_with_axes(program, held[0].call, held[0].name)
            if made is None or constant(argument(made, "batch_first")) is True or is_given(made, "batch_first"):
                continue
            if forward is not None and _turned(program, call, forward):
                continue
            reader = _batch_first_reader(program, owner, call)
            if reader is not None:
                yield spot(made, call, reader, program.statement(call), text=shown(made), reader=shown(reader))


def _made_with_axes(program: Program, call: ast.Call, name: str) -> ast.Call | None:
    """Return the call whose arguments define whether a layer takes the batch first."""
    if name == "TransformerEncoder" and call.args:
        inner = modules(program, call.args[0])
        return inner[0].call if inner else None
    return call if name in {"TransformerEncoderLayer", "MultiheadAttention", "Transformer"} else None


def _turned(program: Program, call: ast.Call, forward: ast.AST) -> bool:
    """Tell whether a `forward` exchanges axes, and so may put the sequence first."""
    text = ast.unparse(forward)
    return bool(re.search(r"transpose\(|permute\(|\.mT|swapaxes|einsum|rearrange|stack\(", text))


def _batch_first_reader(program: Program, owner: Class, call: ast.Call) -> ast.expr | None:
    """Return the expression that reads a result with the batch first: a mean over axis 1, or an index into axis 1."""
    statement = program.statement(call)
    names = {ast.unparse(one) for one in statement.targets} if isinstance(statement, ast.Assign) else set()
    names |= {
        one.elts[0].id
        for one in getattr(statement, "targets", [])
        if isinstance(one, ast.Tuple) and isinstance(one.elts[0], ast.Name)
    }
    forward = owner.methods.get("forward")
    for node in ast.walk(forward) if forward is not None else ():
        line = getattr(node, "lineno", 0)
        if line < statement.lineno:
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"mean", "sum", "amax", "max"}
        ):
            mine = ast.unparse(node.func.value) in names or node.func.value is call
            if mine and number(argument(node, "dim", 0)) == 1:
                return node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and ast.unparse(node.value) in names:
            parts = node.slice.elts
            whole = isinstance(parts[0], ast.Slice) and parts[0].lower is None and parts[0].upper is None
            if whole and isinstance(constant(parts[1]), int):
                return node
    return None


# --- padding ---


def _pads(program: Program) -> ast.expr | None:
    """Return the call that pads sequences with a number other than -100."""
    for call in program.calls:
        if last(program.names.full(call.func)) == "pad_sequence":
            filler = argument(call, "padding_value", 2)
            if filler is None or setting(program, filler) != -100:
                return call
    return None


@reads("padding counts in the loss")
def _padded_targets(program: Program) -> Iterator[Spot]:
    """Find cross entropy over the positions of padded sequences that does not ignore the padding."""
    padded = _pads(program)
    fillers = [argument(one, "padding_value", 2) for one in program.calls_of("pad_sequence")]
    fillers += [argument(one, "padding_value", 2) for one in program.calls_of(".pad_sequence")]
    if padded is None or any(setting(program, one) == -100 for one in fillers) or _writes_filler(program):
        return
    for one in losses(program):
        if one.kind not in {"cross_entropy", "nll_loss"} or one.target is None or not _of_places(program, one.input):
            continue
        made = layer(program, one.call.func)
        calls = [one.call, made.call if made is not None and made.owner is None else one.call]
        given = next((found for call in calls if (found := argument(call, "ignore_index")) is not None), None)
        ends = flow(program).ends(given) if given is not None else ()
        off = given is None or (bool(ends) and all(number(end.node) == -100 for end in ends))
        masked = any(is_given(call, "reduction") for call in calls) or _masks(program, one.call)
        if off and not masked:
            yield spot(
                one.call, program.statement(one.call), padded, made.call if made else one.call, text=shown(one.call)
            )


def _writes_filler(program: Program) -> bool:
    """Tell whether the script writes -100 into some targets, as in `labels[labels == pad] = -100`."""
    writes = (one for one in program.nodes if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Subscript))
    filled = (
        one.args[-1] for one in program.calls if getattr(one.func, "attr", "").startswith("masked_fill") and one.args
    )
    return any(number(one.value) == -100 for one in writes) or any(number(one) == -100 for one in filled)


def _of_places(program: Program, node: ast.expr) -> bool:
    """Tell whether a loss compares outputs for many positions: the script joins or exchanges their axes."""
    text = ast.unparse(node)
    return bool(re.search(r"flatten\(0, ?1\)|transpose\(1, ?2\)|permute\(0, ?2, ?1\)|(view|reshape)\(-1, ", text))


def _masks(program: Program, node: ast.AST) -> bool:
    around = program.function(node) or program.tree
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(around)}
    return any(isinstance(name, str) and re.search(r"mask|valid|keep|real|pack", name) for name in names)


@reads("padding in the mean")
def _padded_mean(program: Program) -> Iterator[Spot]:
    """Find a mean over the positions of padded, embedded tokens that uses neither a mask nor lengths."""
    padded = _pads(program)
    if padded is None:
        return
    for owner in program.modules():
        words = {getattr(one, "id", getattr(one, "attr", getattr(one, "arg", ""))) for one in ast.walk(owner.node)}
        if any(
            isinstance(word, str)
            and (_MASKED.search(word) or (is_padding(program, ast.Name(word)) and word != "padding_idx"))
            for word in words
        ):
            continue
        for call in ast.walk(owner.node):
            mean = (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in {"mean", "max", "amax"}
            )
            if not mean or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            place = 1 if program.names.full(call.func) else 0
            operand = call.args[0] if place and call.args else call.func.value
            if number(argument(call, "dim", place)) == 1 and _embedded(program, operand):
                yield spot(call, padded, program.statement(call), text=shown(call))


def _embedded(program: Program, node: ast.expr, depth: int = 0) -> bool:
    """Tell whether a value has one embedded token for each position."""
    if depth > 8:
        return False
    if isinstance(node, ast.Name):
        bound = program.bound(node)
        return bound is not None and bound.value is not None and _embedded(program, bound.value, depth + 1)
    if isinstance(node, ast.BinOp):
        return _embedded(program, node.left, depth + 1) or _embedded(program, node.right, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    held = layer(program, node.func)
    if held is not None and held.name == "Embedding":
        return True
    inner = node.args[0] if (held is not None or program.names.full(node.func)) and node.args else None
    if inner is None and isinstance(node.func, ast.Attribute):
        inner = node.func.value
    return inner is not None and _embedded(program, inner, depth + 1)


# --- windows ---


@reads("target among the inputs")
def _inside(program: Program) -> Iterator[Spot]:
    """Find windows `x[i : i + n]` with the target `x[i + n - 1]`, which is the last element of the window."""
    for around in [*program.functions.values(), program.tree]:
        cuts = [one for one in ast.walk(around) if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load)]
        windows = [one for one in cuts if isinstance(one.slice, ast.Slice) and one.slice.lower is not None]
        for window in windows:
            for target in cuts:
                same = ast.unparse(target.value) == ast.unparse(window.value) and not isinstance(
                    target.slice, ast.Slice | ast.Tuple
                )
                if same and _is_last(window, target) and _is_pair(program, window, target):
                    yield spot(target, window, text=shown(target), window=shown(window))


def _is_last(window: ast.Subscript, target: ast.Subscript) -> bool:
    """Tell whether an index is the end of a slice minus a number of at least 1."""
    assert isinstance(window.slice, ast.Slice)
    end, index = window.slice.upper, target.slice
    if end is None or not isinstance(index, ast.BinOp) or not isinstance(index.op, ast.Sub):
        return False
    before = number(index.right)
    return before == 1 and ast.unparse(index.left) == ast.unparse(end)


def _is_pair(program: Program, window: ast.AST, target: ast.AST) -> bool:
    """Tell whether the script returns or stores two parts together, as an example and its target."""
    first, second = program.statement(window), program.statement(target)
    if first is second:
        return isinstance(first, ast.Return) or (isinstance(first, ast.Expr) and "append" in ast.unparse(first))
    block = getattr(program.parents.get(first), "body", [])
    return first in block and second in block and abs(block.index(first) - block.index(second)) == 1


RULES = rules_of(globals())
