"""Changes of what a script makes: layers, losses, optimizers, schedules, loaders."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import is_op, method_of, object_of
from glassgrad.doctor.repairs.edits import Edit
from glassgrad.doctor.repairs.zones import Zones

Edits = Iterator[Edit | None]
_IDENTITY = named(
    "Sigmoid Softmax LogSoftmax Softplus Tanh ReLU Dropout Dropout2d BatchNorm1d BatchNorm2d LayerNorm LogSigmoid "
    "GELU LeakyReLU Hardtanh MaxPool2d AvgPool2d"
)
_LINEAR = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
_RECURRENT = frozenset(
    {"RNN", "GRU", "LSTM", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer"}
)
_OTHER_WORDS = {"sum": "mean", "mean": "sum", "max": "min", "min": "max"}


def activations(zones: Zones) -> Edits:
    """Leave a layer out, or put an activation behind one."""
    text = zones.text
    for call, name in zones.calls("model", "setup"):
        full = zones.program.names.full(call.func)
        if not full.startswith("torch.nn."):
            continue
        module = text.of(call.func).rpartition(".")[0]
        dot = f"{module}." if module else ""
        if name in _IDENTITY:
            yield zones.edit(f"{name} does not belong there", (call, f"{dot}Identity()"), prior=4, tunes=True)
        elif name in _LINEAR:
            new = f"{dot}Sequential({text.of(call)}, {dot}LeakyReLU(0.2))"  # the last layer may have to be negative
            yield zones.edit("no activation follows the layer", (call, new), prior=2.5, tunes=True)


def words(zones: Zones) -> Edits:
    """Toggle options, and take the other word of a pair."""
    text = zones.text
    for call, name in zones.calls():
        for one in call.keywords:
            value = one.value
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                yield zones.edit(f"{one.arg}={value.value} is wrong", (value, str(not value.value)), prior=3)
            elif isinstance(value, ast.Constant) and value.value in _OTHER_WORDS:
                other = _OTHER_WORDS[str(value.value)]
                yield zones.edit(f"{one.arg}={value.value!r} is wrong", (value, repr(other)), prior=3)
            elif one.arg == "weight" and "BCE" in name.replace("binary_cross_entropy", "BCE"):
                new = f"pos_weight={text.of(value)}"
                yield zones.edit("weight stands for pos_weight", (one, new), prior=4)
        given = {one.arg for one in call.keywords}
        if name in _RECURRENT and "batch_first" not in given:
            yield _with(zones, call, "batch_first=True", "the axes of batch and time are exchanged", 4)
        if name == "DataLoader" and "shuffle" not in given and "sampler" not in given:
            yield _with(zones, call, "shuffle=True", "the examples are not shuffled", 2.5)
        dropping = name in {"dropout", "alpha_dropout"} and "training" not in given
        if dropping and "self" in text.of(zones.program.statement(call)):
            yield _with(zones, call, "training=self.training", "dropout stays on in evaluation", 3)


def _with(zones: Zones, call: ast.Call, more: str, means: str, prior: float) -> Edit | None:
    """Return the call with one more argument."""
    text = zones.text.of(call)
    body = text.rstrip()[:-1].rstrip().removesuffix(",")
    joint = "" if body.endswith("(") else ", "
    return zones.edit(means, (call, f"{body}{joint}{more})"), prior=prior)


def optimizers(zones: Zones) -> Edits:
    """Take Adam with a usual rate; give the optimizer the parameters of the other models too."""
    text = zones.text
    names = sorted(_models(zones))
    for call, _ in zones.calls("setup", "loop", "model"):
        full = zones.program.names.full(call.func)
        if not full.startswith("torch.optim.") or "lr_scheduler" in full or not call.args:
            continue
        module = text.of(call.func).rpartition(".")[0]
        dot = f"{module}." if module else ""
        for rate in ("3e-3", "3e-2"):
            new = f"{dot}Adam({text.of(call.args[0])}, lr={rate})"
            yield zones.edit("the optimizer's kind or rate does not suit the model", (call, new), prior=2, tunes=True)
        given = call.args[0]
        held = object_of(given) if method_of(given) == "parameters" else None
        if held is not None:
            mine = text.of(held)
            for other in names:
                if other not in mine and mine not in other:
                    new = f"[*{text.of(given)}, *{other}.parameters()]"
                    yield zones.edit(f"the optimizer lacks the parameters of {other}", (given, new), prior=1.5)
            if "." in mine:
                new = f"{mine.rpartition('.')[0]}.parameters()"
                yield zones.edit("the optimizer has a part of the parameters only", (given, new), prior=3)


def _models(zones: Zones) -> set[str]:
    """Return the names that are bound to a module."""
    found = set()
    for node in zones.program.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.targets[0], ast.Name):
            kind = zones.program.classes.get(getattr(node.value.func, "id", ""))
            full = zones.program.names.full(node.value.func)
            if (kind is not None and kind.is_module) or (full.startswith("torch.nn.") and "Loss" not in full):
                found.add(node.targets[0].id)
    return found


def copies(zones: Zones) -> Edits:
    """Make several layers of one that is repeated; draw weights that are all alike."""
    text = zones.text
    for node, zone in zones.nodes:
        if is_op(node, ast.Mult) and isinstance(node.left, ast.List):
            if any(isinstance(one, ast.Call) for one in node.left.elts):
                items = ", ".join(map(text.of, node.left.elts))
                new = f"[one for _ in range({text.of(node.right)}) for one in [{items}]]"
                yield zones.edit("a list repeats one and the same object", (node, new), prior=4)
        elif isinstance(node, ast.Call) and zone == "model" and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr not in {"zeros", "ones", "full", "empty"}:
                continue
            new = f"(0.1 * {text.of(node.func.value)}.randn{text.of(node)[len(text.of(node.func)) :]})"
            yield zones.edit("weights begin alike", (node, new), prior=2)


def backwards(zones: Zones) -> Edits:
    """Multiply what a custom backward pass returns with the cotangent that it is given."""
    for one in zones.program.classes.values():
        method = one.methods.get("backward")
        if method is None or one.is_module or len(method.args.args) < 2:
            continue
        given = method.args.args[-1].arg
        for node in ast.walk(method):
            if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Tuple):
                new = f"({zones.text.of(node.value)}) * {given}"
                yield zones.edit("the backward pass ignores the cotangent that it is given", (node.value, new), prior=4)
