"""Rules about attention and sequences: masks, padding, axes and targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import modules, setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import ident, indices, is_op, method_of, object_of, set_by, within, without
from glassgrad.doctor.reading.polarity import is_padding, kind, polarity
from glassgrad.doctor.reading.program import Program, argument, constant, is_given, number
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import axis_of, layer, library_layer, library_name, losses, op

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
            places = "what is to be left out" if said == "drop" else "what is to be kept"
            also = [program.statement(one) for one in flow(program).origins(mask)]
            yield spot(call, mask, *also, text=shown(mask), places=places, what=what)


def _mask_of(program: Program, call: ast.Call) -> tuple[ast.expr, str, str] | None:
    """Return the mask argument of a call, what true means in it ("keep" or "drop"), and the reason in words."""
    name = library_name(program, call) or method_of(call)
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
    held = library_layer(program, call.func)
    if held is not None and held.name in _ATTENDING:
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


def _words(node: ast.AST) -> list[str]:
    """Return the names of variables, attributes and arguments in a node."""
    return [ident(one) or str(getattr(one, "arg", "")) for one in ast.walk(node)]


# --- targets seen ---


@reads("targets seen by the model")
def _seen(program: Program) -> Iterator[Spot]:
    """Find models of the next token whose attention has no mask, or a mask that is off by one."""
    yield from _late_masks(program)
    limited = any(re.search(r"mask|tril|triu|causal|inf$", word) for word in _words(program.tree))
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
        name = last(full) or method_of(call)
        diagonal = number(argument(call, "diagonal", 1 if full else 0)) if name in {"tril", "triu"} else None
        limit = 1 if name == "tril" else 2
        if diagonal == limit and "ones" in ast.unparse(call) and any(_attends(program, one) for one in program.calls):
            what = f"and the mask {shown(call)} lets each place see the next one"
            yield spot(call, program.statement(call), what=what)


def _attends(program: Program, call: ast.Call) -> bool:
    name, operand = op(program, call)
    return name == "scaled_dot_product_attention" or (
        name == "softmax" and operand is not None and _is_scores(program, _unmasked(program, operand))
    )


def _unmasked(program: Program, node: ast.expr) -> ast.expr:
    """Return scores without their mask."""
    made = flow(program).origin(node)
    inner = object_of(made) if method_of(made) == "masked_fill" else None
    return node if inner is None else inner


def _same_tokens(program: Program, output: ast.expr, target: ast.expr) -> bool:
    """Tell whether a target is the unshifted input of a model of tokens."""
    embeds = any(library_name(program, one) == "Embedding" for one in program.calls)
    wanted = _plain(target)
    return (
        embeds
        and bool(wanted)
        and wanted in [_plain(one) for call in _called(program, output) for one in call.args[:1]]
    )


def _plain(node: ast.expr) -> str:
    """Return the variable in `x.view(-1)` and similar calls; empty for a slice or another expression."""
    node = without(node, "view", "reshape", "flatten", "contiguous")
    return node.id if isinstance(node, ast.Name) else ""


def _next_tokens(program: Program, output: ast.expr, target: ast.expr) -> bool:
    """Tell whether a target is the input of the model shifted by one."""
    source = _slice_of(program, target, True)
    inputs = [one for call in _called(program, output) for one in call.args]
    return source is not None and any(_slice_of(program, one, False) == source for one in inputs)


def _called(program: Program, node: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls of models that compute a value, without entering them."""
    seen = 0
    waiting: list[ast.expr] = [node]
    while waiting and seen < 12:
        one, seen = waiting.pop(), seen + 1
        if isinstance(one, ast.Name):
            source = program.source_of(one)
            waiting += [source] if source is not None else []
        elif isinstance(one, ast.Call):
            if layer(program, one.func) is not None:
                yield one
            elif isinstance(one.func, ast.Attribute) and not program.names.full(one.func):
                waiting.append(one.func.value)
        elif isinstance(one, ast.Subscript):
            waiting.append(one.value)


def _slice_of(program: Program, node: ast.expr | None, later: bool) -> str | None:
    """Return the text of x for `x[:, 1:]` or `x[1:]` if it is to begin `later`; else for `x[:, :-1]` or `x[:-1]`."""
    for _ in range(6):
        if isinstance(node, ast.Name):
            node = program.value_of(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not program.names.full(node.func):
            node = node.func.value
        else:
            break
    cut = indices(node)[-1] if isinstance(node, ast.Subscript) else None
    if not isinstance(node, ast.Subscript) or not isinstance(cut, ast.Slice):
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
        masked = is_given(call, "attn_mask", 3) or is_given(call, "is_causal", 5)
        if name == "scaled_dot_product_attention" and not masked:
            return call
        held = library_layer(program, call.func)
        if held is not None and held.name in _ENCODERS | {"MultiheadAttention"}:
            return call
    return None


def _is_scores(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the product of queries and transposed keys."""
    products = [ast.unparse(one) for one in flow(program).origins(node) if _product(program, one)]
    return any(word in text for text in products for word in ("transpose", ".mT", "einsum"))


def _product(program: Program, node: ast.expr) -> bool:
    return any(is_op(one, ast.MatMult) for one in ast.walk(node)) or any(
        (library_name(program, one) or method_of(one)) in {"matmul", "bmm", "einsum"} for one in within(node, ast.Call)
    )


@reads("softmax along the wrong axis")
def _wrong_axis(program: Program) -> Iterator[Spot]:
    """Find a softmax of scores `q @ k.transpose(-2, -1)` along an axis other than the last."""
    for call in program.calls:
        name, operand = op(program, call)
        if name != "softmax" or operand is None:
            continue
        along = number(axis_of(program, call))
        products = [one for one in flow(program).origins(operand) if _product(program, one)]
        transposed = [axes for one in products for axes in _transposed(one)]
        if along is None or len(transposed) != 1:
            continue
        first, second = sorted(transposed[0])
        axes = 0 if second < 0 else second + 1
        wrong = along in {0, -2} if axes == 0 else along in {0, -2, *range(axes - 1)}
        if wrong and not (along == 0 and first < 0 and axes == 0 and not _many(program, call)):
            yield spot(call, program.statement(call), text=shown(call))


def _many(program: Program, call: ast.Call) -> bool:
    """Tell whether the enclosing function unpacks a shape of at least three axes."""
    for node in within(program.function(call), ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and re.search(r"\.shape|\.size\(\)", ast.unparse(node.value)):
            return len(target.elts) > 2
    return False


def _transposed(node: ast.expr) -> Iterator[tuple[int, int]]:
    for one in within(node, ast.Call):
        axes = [constant(axis) for axis in one.args[-2:]] if method_of(one) == "transpose" else []
        known = [axis for axis in axes if isinstance(axis, int)]
        if len(known) == 2:
            yield known[0], known[1]


# --- axes of sequences ---


@reads("attention across the batch")
def _across(program: Program) -> Iterator[Spot]:
    """Find a layer that takes the sequence first, while the script reads its result with the batch first."""
    for _, forward in program.forwards():
        if _turns(forward):
            continue
        for call in within(forward, ast.Call):
            held = modules(program, call.func) if call.args else None
            made = _made_with_axes(program, held[0].call, held[0].name) if held is not None and len(held) == 1 else None
            if made is None or is_given(made, "batch_first"):
                continue
            reader = _batch_first_reader(program, forward, call)
            if reader is not None:
                yield spot(made, call, reader, program.statement(call), text=shown(made), reader=shown(reader))


def _made_with_axes(program: Program, call: ast.Call, name: str) -> ast.Call | None:
    """Return the call whose arguments define whether a layer takes the batch first."""
    if name == "TransformerEncoder" and call.args:
        inner = modules(program, call.args[0])
        return inner[0].call if inner else None
    return call if name in {"TransformerEncoderLayer", "MultiheadAttention", "Transformer"} else None


def _turns(forward: ast.AST) -> bool:
    """Tell whether a `forward` exchanges axes, and so may put the sequence first."""
    text = ast.unparse(forward)
    return bool(re.search(r"transpose\(|permute\(|\.mT|swapaxes|einsum|rearrange|stack\(", text))


def _batch_first_reader(program: Program, forward: ast.AST, call: ast.Call) -> ast.expr | None:
    """Return the expression that reads a result with the batch first: a mean over axis 1, or an index into axis 1."""
    statement = program.statement(call)
    tuples = [one.elts[0] for one in getattr(statement, "targets", []) if isinstance(one, ast.Tuple)]
    names = set_by(statement) | {one.id for one in tuples if isinstance(one, ast.Name)}
    for node in ast.walk(forward):
        if getattr(node, "lineno", 0) < statement.lineno:
            continue
        if isinstance(node, ast.Call) and method_of(node) in {"mean", "sum", "amax", "max"}:
            held = object_of(node)
            mine = held is call or (held is not None and ast.unparse(held) in names)
            if mine and number(argument(node, "dim", 0)) == 1:
                return node
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and ast.unparse(node.value) in names:
            parts = node.slice.elts
            whole = isinstance(parts[0], ast.Slice) and parts[0].lower is None and parts[0].upper is None
            if whole and len(parts) > 1 and isinstance(constant(parts[1]), int):
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
    pads = [*program.calls_of("pad_sequence"), *program.calls_of(".pad_sequence")]
    ignored = any(setting(program, argument(one, "padding_value", 2)) == -100 for one in pads)
    if padded is None or ignored or _writes_filler(program):
        return
    for one in losses(program):
        if one.kind not in {"cross_entropy", "nll_loss"} or one.target is None or not _of_places(one.input):
            continue
        made = layer(program, one.call.func)
        calls = [one.call, made.call if made is not None and made.owner is None else one.call]
        given = next((found for call in calls if (found := argument(call, "ignore_index")) is not None), None)
        ends = flow(program).origins(given) if given is not None else []
        off = given is None or (bool(ends) and all(number(end) == -100 for end in ends))
        masked = any(is_given(call, "reduction") for call in calls) or _masks(program, one.call)
        if off and not masked:
            also = program.statement(one.call), padded, made.call if made else one.call
            yield spot(one.call, *also, text=shown(one.call))


def _writes_filler(program: Program) -> bool:
    """Tell whether the script writes -100 into some targets, as in `labels[labels == pad] = -100`."""
    written = [one.value for one in program.every(ast.Assign) if isinstance(one.targets[0], ast.Subscript)]
    filled = [one.args[-1] for one in program.calls if method_of(one).startswith("masked_fill") and one.args]
    return any(number(one) == -100 for one in (*written, *filled))


def _of_places(node: ast.expr) -> bool:
    """Tell whether a loss compares outputs for many positions: the script joins or exchanges their axes."""
    text = ast.unparse(node)
    return bool(re.search(r"flatten\(0, ?1\)|transpose\(1, ?2\)|permute\(0, ?2, ?1\)|(view|reshape)\(-1, ", text))


def _masks(program: Program, node: ast.AST) -> bool:
    names = map(ident, ast.walk(program.around(node)))
    return any(re.search(r"mask|valid|keep|real|pack", name) for name in names)


@reads("padding in the mean")
def _padded_mean(program: Program) -> Iterator[Spot]:
    """Find a mean over the positions of padded, embedded tokens that uses neither a mask nor lengths."""
    padded = _pads(program)
    for owner in program.modules() if padded is not None else ():
        words = _words(owner.node)
        if any(_MASKED.search(one) or (is_padding(ast.Name(one)) and one != "padding_idx") for one in words):
            continue
        for call in within(owner.node, ast.Call):
            operand = program.operand(call) if method_of(call) in {"mean", "max", "amax"} else None
            if number(axis_of(program, call)) == 1 and _embedded(program, operand) and padded is not None:
                yield spot(call, padded, program.statement(call), text=shown(call))


def _embedded(program: Program, node: ast.expr | None, depth: int = 0) -> bool:
    """Tell whether a value has one embedded token for each position."""
    if depth > 8:
        return False
    if isinstance(node, ast.Name):
        return _embedded(program, program.source_of(node), depth + 1)
    if isinstance(node, ast.BinOp):
        return _embedded(program, node.left, depth + 1) or _embedded(program, node.right, depth + 1)
    if not isinstance(node, ast.Call):
        return False
    held = layer(program, node.func)
    if held is not None and held.name == "Embedding":
        return True
    inner = node.args[0] if (held is not None or program.names.full(node.func)) and node.args else object_of(node)
    return _embedded(program, inner, depth + 1)


# --- windows ---


@reads("target among the inputs")
def _inside(program: Program) -> Iterator[Spot]:
    """Find windows `x[i : i + n]` with the target `x[i + n - 1]`, which is the last element of the window."""
    for around in [*program.functions.values(), program.tree]:
        cuts = [one for one in within(around, ast.Subscript) if isinstance(one.ctx, ast.Load)]
        for window in cuts:
            for target in cuts if isinstance(window.slice, ast.Slice) and window.slice.lower is not None else ():
                same = ast.unparse(target.value) == ast.unparse(window.value)
                if same and _is_last(window.slice, target.slice) and _is_pair(program, window, target):
                    yield spot(target, window, text=shown(target), window=shown(window))


def _is_last(window: ast.expr, index: ast.expr) -> bool:
    """Tell whether an index is the end of a slice minus 1."""
    end = window.upper if isinstance(window, ast.Slice) else None
    if end is None or not is_op(index, ast.Sub):
        return False
    return number(index.right) == 1 and ast.unparse(index.left) == ast.unparse(end)


def _is_pair(program: Program, window: ast.AST, target: ast.AST) -> bool:
    """Tell whether the script returns or stores two parts together, as an example and its target."""
    first, second = program.statement(window), program.statement(target)
    if first is second:
        return isinstance(first, ast.Return) or (isinstance(first, ast.Expr) and "append" in ast.unparse(first))
    block = getattr(program.parents.get(first), "body", [])
    return first in block and second in block and abs(block.index(first) - block.index(second)) == 1


RULES = rules_of(globals())
