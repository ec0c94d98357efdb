"""What expressions of a script stand for: layers, losses, and the op that made a value."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.doctor.reading.actors import modules, setting
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import has_attribute, names_in, of_self, within
from glassgrad.doctor.reading.program import DEEPEST, FUNCTIONS, Bound, Class, Program, argument

LOSSES = {
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
    "MSELoss": "mse_loss",
    "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss",
    "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div",
    "CTCLoss": "ctc_loss",
}
"""The losses of the library: class and function."""
ELEMENTWISE = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_FUNCTIONS = frozenset(LOSSES.values())
_SAME = named(
    "to cuda cpu eval train double float half bfloat16 requires_grad_ apply contiguous clone compile share_memory"
)
"""Methods that return the module itself."""
_WRAPPERS = frozenset({"DataParallel", "DistributedDataParallel", "compile", "FullyShardedDataParallel"})
_THROUGH = named(
    "squeeze unsqueeze view reshape flatten float double to contiguous cpu cuda clone transpose permute type"
)
"""Methods whose result has the numbers of the tensor."""
_OPS = named(
    "softmax log_softmax sigmoid relu tanh argmax detach round item exp logsigmoid gumbel_softmax softplus numpy sign "
    "tolist floor ceil dropout"
)
"""Ops that rules know by their names, as functions and as methods."""
_MADE_BY = {
    "softmax": "Softmax Softmax2d",
    "log_softmax": "LogSoftmax",
    "sigmoid": "Sigmoid",
    "relu": "ReLU",
    "tanh": "Tanh",
    "linear": "Linear LazyLinear",
    "conv": "Conv1d Conv2d Conv3d",
    "logsigmoid": "LogSigmoid",
    "dropout": "Dropout AlphaDropout",
}
_ENDS = {layer: op for op, layers in _MADE_BY.items() for layer in layers.split()}
"""The op that makes the output of a layer, by the class of the layer."""
WITH_WEIGHTS = named(
    "Linear LazyLinear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm1d "
    "BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm GroupNorm InstanceNorm1d InstanceNorm2d RMSNorm Embedding "
    "EmbeddingBag RNN LSTM GRU RNNCell LSTMCell GRUCell MultiheadAttention TransformerEncoderLayer "
    "TransformerDecoderLayer Transformer PReLU TransformerEncoder TransformerDecoder"
)
"""Layers of the library that have weights."""
DRAWING = named("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout")
"""Layers that behave otherwise in training: dropout; `NORMS` likewise."""
NORMS = named("BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm")
RECURRENT = frozenset({"RNN", "LSTM", "GRU"})


@dataclass(frozen=True)
class Layer:
    """A module: the name of its class, the call that makes it, and the class if the script defines it."""

    name: str
    call: ast.Call
    owner: Class | None = None


@dataclass(frozen=True)
class End:
    """The op that made a value, and where it is called or, for a layer, made."""

    op: str
    node: ast.expr


@dataclass(frozen=True)
class Loss:
    """A call of a loss of the library."""

    kind: str
    call: ast.Call
    input: ast.expr
    target: ast.expr | None


def library_name(program: Program, call: ast.AST | None) -> str:
    """Return the last part of the full name of a called function or class of the library; empty for others."""
    full = program.names.full(call.func) if isinstance(call, ast.Call) else ""
    return last(full) if full.startswith("torch.") else ""


def layer(program: Program, node: ast.expr | None, depth: int = 0) -> Layer | None:
    """Return the module that an expression stands for."""
    found = _layer(program, node, depth)
    if found is None and depth == 0 and isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return _followed(program, node)
    return found


def library_layer(program: Program, node: ast.expr | None) -> Layer | None:
    """Return the module that an expression stands for, if the library has its class."""
    found = layer(program, node)
    return None if found is None or found.owner is not None else found


def axis_of(program: Program, call: ast.Call) -> ast.expr | None:
    """Return the axis that a reduction gets: `dim`, or the first argument beside the operand."""
    return argument(call, "dim", 1 if program.names.full(call.func) else 0)


def _followed(program: Program, node: ast.expr) -> Layer | None:
    """Return the module of a value if all paths to it agree."""
    held = modules(program, node)
    if held is None or len({(one.name, one.owner and one.owner.node) for one in held}) != 1:
        return None
    return Layer(held[0].name, held[0].call, held[0].owner)


def _layer(program: Program, node: ast.expr | None, depth: int) -> Layer | None:
    if node is None or depth > DEEPEST:
        return None
    if isinstance(node, ast.Call):
        return _made(program, node, depth)
    if isinstance(node, ast.Name):
        return _layer(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.Attribute):
        if of_self(node):
            owner = program.owner(node)
        else:
            around = _layer(program, node.value, depth + 1)
            owner = None if around is None else around.owner
        if program.method(owner, node.attr) is not None:
            return None  # a method hides an attribute of its name
        bounds = [one for one in program.attribute(owner, node.attr) if not isinstance(one.value, ast.Constant)]
        return _layer(program, bounds[-1].value, depth + 1) if bounds and bounds[-1].item is None else None
    return None


def _made(program: Program, call: ast.Call, depth: int) -> Layer | None:
    name = library_name(program, call)
    if name in _WRAPPERS:
        return _layer(program, call.args[0], depth + 1) if call.args else None
    if name[:1].isupper() and program.names.full(call.func) == f"torch.nn.{name}" and name != "Parameter":
        return Layer(name, call)
    if isinstance(call.func, ast.Name) and (owner := program.classes.get(call.func.id)) and owner.is_module:
        return Layer(call.func.id, call, owner)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME:
        return _layer(program, call.func.value, depth + 1)
    return None


def has_weights(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes a module with weights: of the library, or of a class of the script."""
    found = _made(program, call, DEEPEST)
    if found is None:
        return False
    if found.name == "Sequential":
        return any(isinstance(one, ast.Call) and has_weights(program, one) for one in call.args)
    if found.owner is None:
        return found.name in WITH_WEIGHTS
    inner = (one for one in within(found.owner.node, ast.Call) if one is not call)
    return any(library_name(program, one) in WITH_WEIGHTS | {"Parameter"} for one in inner)


def drops(program: Program) -> bool:
    """Tell whether a dropout of a script may drop something: not if each has a probability of 0, also by a default."""
    places = {**dict.fromkeys(DRAWING, 0), "dropout": 1}
    calls = [(call, places[name]) for call in program.calls if (name := library_name(program, call)) in places]
    return not calls or any(setting(program, argument(call, "p", place)) != 0 for call, place in calls)


def kinds(program: Program, found: Layer, depth: int = 0) -> set[str] | None:
    """Return the classes of the library that a module consists of; None if some of them are not known."""
    if found.owner is None and found.name != "Sequential":
        return {found.name}
    names: set[str] = set()
    for call in within(found.owner.node if found.owner is not None else found.call, ast.Call):
        part = _made(program, call, DEEPEST) if call is not found.call else None
        if part is None or depth > DEEPEST:
            continue
        inner = kinds(program, part, depth + 1) if part.owner is not None and part.owner is not found.owner else set()
        if inner is None:
            return None
        names |= inner | {part.name}
    if found.owner is not None and any(base in program.classes for base in found.owner.bases):
        return None
    starred = any(isinstance(one, ast.Starred) for one in found.call.args) and found.owner is None
    return None if starred else names


# --- the op that made a value ---


def op(program: Program, call: ast.AST | None) -> tuple[str, ast.expr | None]:
    """Return the name of the op that a call computes and its first operand; an empty name for other nodes."""
    if not isinstance(call, ast.Call):
        return "", None
    full = program.names.full(call.func)
    name = last(full)
    if full.startswith(("torch.nn.functional.", "torch.special.")) or (full == f"torch.{name}" and name[:1].islower()):
        return name, argument(call, "input", 0)
    if not full and isinstance(call.func, ast.Attribute) and layer(program, call.func) is None:
        return call.func.attr, call.func.value  # a method, and no layer of that name
    return "", None


def end(program: Program, node: ast.expr | None, depth: int = 0) -> End | None:
    """Return the op that made a value, looking through reshapes, names, layers and the script's modules."""
    found = _end(program, node, depth)
    return found if found is not None or depth or node is None else _end_by_flow(program, node)


def _end_by_flow(program: Program, node: ast.expr) -> End | None:
    """Return the op that made a value, if all paths through parameters, methods and results agree."""
    ends = [_end(program, one.node, 1) if not one.path else None for one in flow(program).ends(node)]
    known = [one for one in ends if one is not None]
    same = bool(known) and len(known) == len(ends) and len({one.op for one in known}) == 1
    return known[-1] if same else None


def _end(program: Program, node: ast.expr | None, depth: int) -> End | None:
    if node is None or depth > DEEPEST:
        return None
    if isinstance(node, ast.Call):
        return _end_of_call(program, node, depth)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return End("data", node)
    bound = program.bound(node)
    if bound is not None and bound.item is not None:
        return _end_of_part(program, bound, depth + 1)
    return end(program, bound.value, depth + 1) if bound is not None else None


def _end_of_part(program: Program, bound: Bound, depth: int) -> End | None:
    """Return the op that made one of several results of a module of the script."""
    called = layer(program, bound.value.func) if isinstance(bound.value, ast.Call) else None
    if called is None or called.owner is None or bound.item is None:
        return None
    forward = program.method(called.owner, "forward")
    given = [one.value for one in returns(program, forward)] if forward is not None else []
    parts = [one.elts for one in given if isinstance(one, ast.Tuple) and len(one.elts) > bound.item]
    known = len(parts) == len(given) == 1
    return end(program, parts[0][bound.item], depth + 1) if known else None


def _end_of_call(program: Program, call: ast.Call, depth: int) -> End | None:
    name, operand = op(program, call)
    if name in _OPS:
        return End(name, call)
    if name in _THROUGH and operand is not None:
        return end(program, operand, depth + 1)
    called = layer(program, call.func)
    return None if called is None else end_of_layer(program, called, depth + 1)


def end_of_layer(program: Program, found: Layer, depth: int = 0) -> End | None:
    """Return the op that makes the output of a module."""
    if depth > DEEPEST:
        return None
    if found.owner is not None:
        return _end_of_forward(program, found.owner, depth)
    if found.name == "Sequential":
        parts = found.call.args
        if not parts:
            return None
        final = parts[-1]
        inner = _final_of(program, final.value) if isinstance(final, ast.Starred) else layer(program, final)
        return None if inner is None else end_of_layer(program, inner, depth + 1)
    return End(_ENDS[found.name], found.call) if found.name in _ENDS else None


def _final_of(program: Program, listed: ast.expr) -> Layer | None:
    """Return the last layer of a list display that nothing extends."""
    written = flow(program).origin(listed)
    name = listed.id if isinstance(listed, ast.Name) else ""
    grows = any(ast.unparse(call.func) in {f"{name}.append", f"{name}.extend"} for call in program.calls)
    return layer(program, written.elts[-1]) if isinstance(written, ast.List) and written.elts and not grows else None


def _end_of_forward(program: Program, owner: Class, depth: int) -> End | None:
    forward = program.method(owner, "forward")
    ends = [end(program, one.value, depth + 1) for one in returns(program, forward)] if forward is not None else []
    known = [one for one in ends if one is not None]
    same = len(known) == len(ends) and len({one.op for one in known}) == 1
    return known[-1] if same else None


def returns(program: Program, function: ast.AST) -> Iterator[ast.Return]:
    """Yield the return statements of a function, without those of functions in it."""
    for node in within(function, ast.Return):
        if node.value is not None and program.function(node) is function:
            yield node


# --- losses ---


def loss(program: Program, call: ast.AST | None) -> Loss | None:
    """Return the loss that a call computes; None if it computes none of the library's."""
    if not isinstance(call, ast.Call):
        return None
    name = library_name(program, call)
    if name not in _FUNCTIONS:
        name = LOSSES.get(held.name, "") if (held := library_layer(program, call.func)) is not None else ""
    given = argument(call, "input", 0)
    return Loss(name, call, given, argument(call, "target", 1)) if name and given is not None else None


@functools.lru_cache(maxsize=2)
def losses(program: Program) -> tuple[Loss, ...]:
    """Return the calls of losses in a script."""
    found = (loss(program, one) for one in program.calls)
    return tuple(one for one in found if one is not None)


def inside(program: Program, node: ast.AST, name: str) -> bool:
    """Tell whether a node stands in a method of this name."""
    return any(isinstance(one, FUNCTIONS) and one.name == name for one in program.outward(node))


def optimizes(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes an optimizer, or calls a function of the script that makes one."""
    function = program.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
    calls = [call, *within(function, ast.Call)]
    return any(program.names.full(one.func).startswith("torch.optim.") for one in calls)


def repeats(program: Program, call: ast.Call) -> bool:
    """Tell whether a loop without training repeats a call with the same arguments, as to measure its spread."""
    for one in program.outward(call):
        targets: list[ast.expr] = []
        if isinstance(one, ast.ListComp | ast.GeneratorExp):
            targets = [part.target for part in one.generators]
        elif isinstance(one, ast.For) and not has_attribute(one, "backward"):
            targets = [one.target]
        if targets:
            return not names_in(*targets) & names_in(call)
    return False
