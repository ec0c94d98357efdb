"""Suspects about what lasts: modes, frozen parts, checkpoints, the best model, averages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.about.modes import draws_examples
from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.iterations import rounds, trainings
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import arguments, callee_of, names_in, object_of, target_of, within
from glassgrad.doctor.reading.program import FUNCTIONS, Class, Function, Program, argument, constant, is_given, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each
from glassgrad.doctor.reading.suspects.lookup import calls_of, has_call, source, text
from glassgrad.doctor.reading.suspects.loops.training import any_target_text, conditions, optimizers, schedules
from glassgrad.doctor.reading.values import drops, layer

_HEADS = {"resnet": "fc", "resnext": "fc", "inception": "fc", "googlenet": "fc", "shufflenet": "fc"}
_HEADS |= dict.fromkeys(("vgg", "alexnet", "densenet", "mobilenet", "efficientnet", "squeezenet"), "classifier")
_HEADS |= {"vit": "heads", "swin": "head"}
"""The last layer of the models of torchvision, by the beginning of their names."""
_OF_HEADS = re.compile(r"^(fc|classifier|head|heads|out|output|top|last_linear)$")
_HELPERS = re.compile(r"teacher|target|ref|ema|disc|vgg|frozen|extract|lpips|backbone|bn|critic|old", re.IGNORECASE)
_KINDS = frozenset({"weight", "bias", "gamma", "beta", "running_mean", "running_var"})
"""Names of parameters in layers of the library."""
_OTHERS = "torchvision", "timm", "transformers", "hub"
_KEPT = re.compile(r"best|lowest|highest|(min|max)_\w*(loss|acc|err|score)")
_LIMIT = re.compile(r"tol|thres|limit|eps", re.IGNORECASE)
_BEST = re.compile(r"best|min_|max_|lowest|highest", re.IGNORECASE)


# --- modes ---


@suspects("model stays in evaluation mode")
def _resting(program: Program) -> Iterator[Spot]:
    """Find `eval()` within the epochs, and `train()` only before them or only at their beginning."""
    found = [(one, one.of("eval"), one.of("train")) for one in rounds(program)]
    found += [(one, one.own("eval"), one.of("train")) for one in trainings(program) if one.whole]
    for one, rests, wakes in found:
        modes = re.search(r"\.train\(\w*(mode|training|is_train)", source(program))
        for event in rests if not wakes and not modes else ():
            if not _HELPERS.search(event.receiver.rpartition(".")[2]):
                yield look_at(event.node, *event.chain)
                yield from (spot(it, text=shown(event.node)) for it in event.chain if one.node in program.outward(it))
                break
    yield from _put_to_rest(program)


def _put_to_rest(program: Program) -> Iterator[Spot]:
    """Find `model.eval()` before a training, in a script that never calls train()."""
    if re.search(r"\.train\(", source(program)):
        return
    for call in program.calls_of(".eval"):
        name = text(object_of(call))
        known = name and not _HELPERS.search(name)
        loops = [one.node for one in trainings(program) if one.whole and known and f"{name}(" in text(one.node)]
        if any(one.lineno > call.lineno and program.function(one) is program.function(call) for one in loops):
            yield look_at(call)


_OFF = re.compile(r"dropout\w*(: float)? ?= ?0(\.0*)?(?![\d.])|Dropout\w*\(0(\.0*)?\)")
"""Dropout of nothing."""


@suspects("evaluation without eval()")
def _awake(program: Program) -> Iterator[Spot]:
    """Find a model with dropout or batch normalisation, called under no_grad in a script without eval()."""
    words = source(program)
    if re.search(r"\.eval\(|train\(False\)|\.train\(\w|mode=False", words) or not has_call(program.tree, "backward"):
        return
    resting = _OFF.sub("", words)
    draws = re.search(r"[dD]ropout", resting) and drops(program)
    if not draws and not re.search(r"BatchNorm|batch_norm", resting):
        return
    for block in program.nodes:
        marks = block.items if isinstance(block, ast.With) else []
        if isinstance(block, ast.With) and any(re.search(r"no_grad|inference", text(one)) for one in marks):
            calls = [one for one in within(block, ast.Call) if _is_model(program, one)]
            calls = [one for one in calls if not draws_examples(program, one)]
            yield from (look_at(one, block) for one in calls[:1])
        elif isinstance(block, FUNCTIONS) and _judges(program, block):
            calls = [one for one in within(block, ast.Call) if _is_model(program, one)]
            if "no_grad" not in text(block) and not has_call(block, "backward"):
                yield from (look_at(one, block) for one in calls[:1])


def _judges(program: Program, function: Function) -> bool:
    """Tell whether a function evaluates a model, by its name; the scores of a module's attention do not."""
    owner = program.owner(function)
    own = owner is not None and owner.is_module
    return re.match(f"_?(eval|valid|test|accuracy{'' if own else '|score|predict'})", function.name) is not None


def _is_model(program: Program, call: ast.Call) -> bool:
    named = re.fullmatch(r"(self\.)?(\w*model|net|network|\w*_net|classifier|\w*encoder)", text(call.func))
    return bool(named) or layer(program, call.func) is not None


@suspects("mode set as an attribute")
def _attribute(program: Program) -> Iterator[Spot]:
    """Find `model.training = False`, which its layers do not follow."""
    for node in program.every(ast.stmt):
        target = target_of(node)
        if isinstance(target, ast.Attribute) and target.attr == "training":
            owner = program.owner(node)
            own = text(target.value) == "self" and owner is not None and owner.is_module
            if own or text(target.value) not in {"self", "ctx"}:
                yield look_at(node, owner=text(target.value))


@suspects_each("mode against the name of its function", Function)
def _against(program: Program, function: Function) -> Iterator[Spot]:
    """Find `train()` in a function that evaluates, and `eval()` in one that trains."""
    judges = re.match(r"_?(eval|valid|test|predict|infer|score)", function.name)
    trains = re.match(r"_?(train|fit)", function.name) and ".train()" not in source(program)
    learns = has_call(function, "backward")
    calls = [one for one in within(function, ast.Call) if isinstance(one.func, ast.Attribute)]
    wakes = [one for one in calls if callee_of(one) == "train" and not arguments(one)]
    rests = [one for one in calls if callee_of(one) == "eval"]
    if judges and wakes and not rests and not learns:
        yield look_at(wakes[0], function, name=function.name)
    elif trains and learns and _alone(rests):
        yield look_at(rests[0], function, name=function.name)


def _alone(rests: list[ast.Call]) -> bool:
    """Tell whether all calls of eval() are of a model that is named as the one that learns."""
    return bool(rests) and all(re.fullmatch(r"(self\.)?(model|net|network)\.eval", text(one.func)) for one in rests)


@suspects_each("mode that does not reach the layers", Program.modules)
def _overridden(program: Program, owner: Class) -> Iterator[Spot]:
    """Find a module whose own `train` or `eval` does not call that of `nn.Module`."""
    for name in ("train", "eval"):
        method = owner.methods.get(name)
        if method is None or has_call(method, "super", "backward", "modules", "children"):
            continue
        passes_on = re.search(r"Module\.(train|eval)\(|\.(train|eval)\(", text(method))
        if not passes_on and "train" not in (name if len(method.args.args) > 2 else ""):
            yield spot(method, text=f"{owner.node.name}.{name}()")


# --- frozen parts ---


@suspects_each("new head frozen with the rest", ast.For)
def _frozen_head(program: Program, node: ast.For) -> Iterator[Spot]:
    """Find `model.fc = nn.Linear(...)` before a loop that freezes all of the model."""
    if len(node.body) != 1:
        return
    freezes = re.search(r"\.requires_grad( = |_\()False", text(node.body[0]))
    root = text(node.iter).removesuffix(".parameters()")
    if not freezes or not root.isidentifier() or any(one.lineno > node.lineno for one in _released(program)):
        return
    for other in program.nodes:
        made = other.value if isinstance(other, ast.Assign) and other.lineno < node.lineno else None
        fresh = callee_of(made)[:1].isupper() and any_target_text(other).startswith(f"{root}.")
        if made is not None and fresh and program.function(other) is program.function(node):
            yield spot(node, made, text=shown(node.iter), head=shown(program.statement(made)))


def _released(program: Program) -> list[ast.stmt]:
    """Return the statements that let weights learn."""
    found = [one for one in program.nodes if isinstance(one, ast.Assign | ast.Expr)]
    return [one for one in found if re.search(r"requires_grad(_\(True|_\(\)| = (?!False))", text(one))]


@suspects("names that freeze the wrong part")
def _by_name(program: Program) -> Iterator[Spot]:
    """Find `if "fc" in name: requires_grad = False`, and a name that no layer of the script has."""
    known = source(program)
    foreign = any(one.partition(".")[0] in _OTHERS for one in program.names.modules) or "hub.load" in known
    for node in program.nodes:
        if not isinstance(node, ast.Assign | ast.Expr) or not re.search(r"requires_grad(_\(| = )", text(node)):
            continue
        chosen = isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp)
        for test in [node.value] if chosen else list(conditions(program, node))[:1]:
            how = _misled(test, known, foreign, freezes="False" in text(node))
            if how:
                yield look_at(test, how=how)


def _misled(test: ast.expr, known: str, foreign: bool, freezes: bool) -> str:
    """Return what is odd about the names in a condition; empty if nothing is."""
    if not re.search(r" in |(starts|ends)with", text(test)):
        return ""
    words = [one.value for one in within(test, ast.Constant) if isinstance(one.value, str)]
    for word in words:
        parts = [part for part in word.split(".") if part and not part.isdigit() and part not in _KINDS]
        if not foreign and any(known.count(part) <= 1 for part in parts):
            return f"no layer of the script is called '{word}'"
        positive = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In)
        if positive and _OF_HEADS.match(word) and freezes:
            return "this is the name of a head"
    return ""


@suspects_each("vectors that stay frozen", calls_of(".from_pretrained"))
def _pretrained(program: Program, call: ast.Call) -> object:
    of = text(object_of(call))
    return of.rpartition(".")[2] in {"Embedding", "EmbeddingBag"} and not is_given(call, "freeze", 1)


@suspects_each("attribute that no forward pass reads", ast.Assign)
def _new_attribute(program: Program, node: ast.Assign) -> Iterator[Spot]:
    """Find `resnet.classifier = nn.Linear(...)`, and `model.fc.out_features = 10`."""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or text(target.value) == "self":
        return
    if target.attr in {"out_features", "in_features", "out_channels", "num_classes", "p", "kernel_size"}:
        if isinstance(target.value, ast.Attribute | ast.Subscript) and target.attr not in {"p", "num_classes"}:
            yield look_at(node, name=target.attr)
        return
    makes = isinstance(node.value, ast.Call) and program.names.full(node.value.func).startswith("torch.nn.")
    if makes and isinstance(target.value, ast.Name) and _unknown(program, target.value, target.attr):
        yield look_at(node, name=target.attr)


def _unknown(program: Program, model: ast.Name, name: str) -> bool:
    """Tell whether a model is known and has no attribute of this name."""
    value = program.value_of(model)
    if not isinstance(value, ast.Call):
        return False
    made = callee_of(value).lower()
    for start, head in _HEADS.items():
        if made.startswith(start) and "torchvision" in " ".join(program.names.modules):
            return _OF_HEADS.match(name) is not None and name not in {head, "features", "avgpool"}
    owner = program.classes.get(text(value.func))
    return owner is not None and owner.is_module and f"self.{name}" not in text(owner.node) and len(owner.bases) == 1


# --- checkpoints ---


@suspects_each("weights loaded loosely", calls_of(".load_state_dict"))
def _loose(program: Program, call: ast.Call) -> object:
    """Find `load_state_dict(..., strict=False)` whose result is thrown away."""
    return constant(argument(call, "strict", 1)) is False and isinstance(program.parents.get(call), ast.Expr)


@suspects("training resumed in part")
def _resumed(program: Program) -> Iterator[Spot]:
    """Find a script that goes on from a stored epoch without the state of its optimizer or schedule."""
    loads = program.calls_of(".load_state_dict")
    begins = [one for one in program.every(ast.Subscript) if constant(one.slice) == "epoch"]
    begins = [one for one in begins if isinstance(one.ctx, ast.Load)]
    receivers = " ".join(text(one.func) for one in loads)
    if not loads or not begins or not optimizers(program):
        return
    lacks = "" if re.search(r"opt|adam|sgd", receivers, re.IGNORECASE) else "the optimizer"
    scheduled = schedules(program) and "last_epoch" not in source(program)
    lacks = lacks or ("the schedule" if scheduled and not re.search(r"sched|lr_", receivers, re.IGNORECASE) else "")
    if lacks:
        yield look_at(begins[0], loads[0], lacks=lacks)
        yield spot(loads[0], text=shown(begins[0]), lacks=lacks)


@suspects_each("weights set again behind their loading", ast.Call)
def _overwritten(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `model.apply(init)` behind `load_state_dict` or a pretrained model."""
    init = callee_of(call) == "apply" and call.args and re.search(r"init|reset", text(call.args[0]))
    init = init or re.fullmatch(r"(re)?init\w*weights?|weights?_init|reset_parameters", callee_of(call))
    roots = names_in(call.func) | {name for one in call.args for name in names_in(one)} if init else set()
    for other in program.calls if roots else ():
        loads = callee_of(other) == "load_state_dict" or re.search(r"pretrained=True|weights=(?!None)", text(other))
        same = program.function(other) is program.function(call) and other.lineno < call.lineno
        apart = any(isinstance(one, ast.If) and one in program.outward(other) for one in program.outward(call))
        if not loads or not same or apart or not roots & names_in(program.statement(other)):
            continue
        if "torch" not in roots & names_in(other):
            yield look_at(call, other, load=shown(other))
            break


@suspects_each("best weights without a copy", ast.Assign)
def _reference(program: Program, node: ast.Assign) -> object:
    """Find `best = model`, and shallow copies of `state_dict()`."""
    target = text(node.targets[0])
    if not re.search(r"best|snapshot|backup|saved", target, re.IGNORECASE):
        return False
    value = text(node.value)
    model = re.fullmatch(r"(self\.)?(model|net|network|\w+_model|\w+_net)", value) and program.loops(node)
    shallow = re.fullmatch(r"(dict\()?[\w.]+\.state_dict\(\)(\.copy\(\)|\))|copy\.copy\(.*|copy\([\w.]+\)", value)
    listed = isinstance(node.value, ast.DictComp) and isinstance(node.value.value, ast.Name) and "state_dict" in value
    return (model and value != target) or shallow or listed


@suspects_each("best weights never used", ast.Assign)
def _unused(program: Program, node: ast.Assign) -> object:
    """Find a copy of the best weights that nothing loads or returns."""
    target = node.targets[0]
    copies = re.search(r"deepcopy|state_dict\(\)|clone\(\)", text(node.value))
    name = text(target).removeprefix("self.")
    if not copies or not _BEST.search(name) or not name.isidentifier():
        return False
    reads = [one for one in program.nodes if isinstance(getattr(one, "ctx", None), ast.Load)]
    reads = [one for one in reads if name in {getattr(one, "id", ""), getattr(one, "attr", "")}]
    owner = program.owner(node)
    inherits = owner is not None and any(base not in program.classes for base in owner.bases if base != "object")
    return not reads and not inherits and look_at(node, name=name)


@suspects_each("best value never set", ast.If)
def _best(program: Program, node: ast.If) -> Iterator[Spot]:
    """Find `if value < best:` whose body keeps weights and not the value, and a start that nothing beats."""
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return
    for best, value in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        name = text(best)
        known = _BEST.search(name) and not _LIMIT.search(name)
        if not known or not isinstance(best, ast.Name | ast.Attribute) or number(value) is not None:
            continue
        body = " ".join(text(one) for one in node.body)
        keeps = re.search(r"state_dict|save|deepcopy|patien|wait|counter", body)
        if keeps and not _sets(program, name):
            yield spot(node, text=shown(test), name=name, how="no round sets it")
        elif _is_worse(test, best, value) and any(any_target_text(one) == name for one in node.body):
            yield spot(node, text=shown(test), name=name, how="it keeps the worse value")
        elif _KEPT.search(name) and _out_of_reach(program, test, best):
            for place in (node, *_begins(program, best)):
                yield spot(place, text=shown(test), name=name, how="it begins where no value beats it")


def _is_worse(test: ast.Compare, best: ast.expr, value: ast.expr) -> bool:
    """Tell whether a comparison prefers a higher loss or a lower score, by the name of the value."""
    rises = _rises(test, best)
    falls = re.search(r"loss|err|mse|mae\b|nll|perplex|ppl", text(value), re.IGNORECASE)
    grows = re.search(r"acc|f1|auc|iou|dice|bleu|reward|score", text(value), re.IGNORECASE)
    return "-" not in text(value) and bool((falls and not grows and rises) or (grows and not falls and not rises))


def _sets(program: Program, name: str) -> bool:
    """Tell whether a loop or a method sets a variable to a value that the script computes."""
    for node in program.nodes:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        held = {text(part) for one in targets for part in (one, *getattr(one, "elts", []))}
        function = program.function(node)
        inside = program.loops(node) or (function is not None and function.name != "__init__")
        value = node.value if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) else None
        if name in held and inside and number(value) is None and "inf" not in text(value):
            return True
    return False


def _begins(program: Program, best: ast.expr) -> list[ast.stmt]:
    """Return the statements that set a variable to a number."""
    found = [one for one in program.every(ast.Assign) if text(one.targets[0]) == text(best)]
    return [one for one in found if number(one.value) is not None]


def _out_of_reach(program: Program, test: ast.Compare, best: ast.expr) -> bool:
    begins = _begins(program, best)
    begin = number(begins[0].value) if begins and isinstance(begins[0], ast.Assign) else None
    return begin is not None and (begin >= 100 if _rises(test, best) else begin <= 0)


def _rises(test: ast.Compare, best: ast.expr) -> bool:
    """Tell whether a comparison asks for a value above the best one so far."""
    return isinstance(test.ops[0], ast.Lt | ast.LtE if text(test.left) == text(best) else ast.Gt | ast.GtE)


@suspects("best by the training data")
def _by_training(program: Program) -> Iterator[Spot]:
    """Find a choice of the best weights by the loss of the training."""
    for node in program.every(ast.If):
        test = node.test
        if isinstance(test, ast.Compare) and _BEST.search(text(test)):
            judged = re.search(r"(^|\W)(train|running|epoch|total|avg)_?\w*(loss|acc)\b", text(test))
            keeps = any(has_call(one, "save", "state_dict", "deepcopy") for one in node.body)
            if judged and keeps and re.search(r"val|test", source(program)) and "val" not in text(test):
                yield spot(node, text=shown(test))


# --- averages ---


@suspects("average without the buffers")
def _buffers(program: Program) -> Iterator[Spot]:
    """Find an average of weights that leaves out the running statistics of batch normalisation."""
    words = source(program)
    if not re.search(r"BatchNorm|batch_norm", words) or re.search(r"buffers\(|state_dict\(\)\.(items|values)", words):
        return
    for loop in program.every(ast.For):
        both = text(loop.iter).startswith("zip(") and text(loop.iter).count("parameters()") == 2
        inner = " ".join(map(text, ast.walk(loop))) if both else ""
        moves = re.search(r"lerp_|mul_\(.*add_|\* .*\+ |copy_\(.*\*|sub_\(", inner)
        if moves:
            yield spot(loop, loop.body[0], text=shown(loop.iter))


@suspects_each("average of a length out of the usual", ast.Call)
def _length(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find a decay of 0.9999 and more, or below 0.9, for an average of weights."""
    name = callee_of(call)
    if not re.search(r"ema|average", name, re.IGNORECASE) or name[:1].islower():
        return
    for given in ("decay", "beta", "momentum", "alpha"):
        value = argument(call, given)
        decay = setting(program, value) if value is not None else None
        if decay is not None and (decay >= 0.9999 or decay < 0.8):
            yield look_at(call, decay=f"{decay:g}")


@suspects_each("statistics of averaged weights", ast.Call)
def _swa(program: Program, call: ast.Call) -> object:
    full = program.names.full(call.func)
    known = re.search(r"update_bn|use_buffers=True", source(program))
    return last(full) == "AveragedModel" and not known and re.search(r"BatchNorm|resnet|vgg\w*bn", source(program))


@suspects("weights of an average exchanged")
def _exchanged(program: Program) -> Iterator[Spot]:
    """Find `decay * new + (1 - decay) * average`, `average.lerp_(new, decay)` and their likes."""
    decay = r"(self\.)?(\w*decay|momentum|beta|alpha_ema|m)"
    mean = r"(self\.)?\w*(ema|shadow|avg|average|slow|target|teacher|mean)\w*(\.data|\[\w+\])?"
    forms = (
        rf"{decay} \* (?!{mean} )[\w.]+(\[\w+\])? \+ \(1(\.0)? - {decay}\) \* {mean}",
        rf"\(1(\.0)? - {decay}\) \* {mean} \+ {decay} \* ",
        rf"{mean}\.lerp_\([\w.]+, {decay}\)",
        rf"{mean}\.mul_\(1(\.0)? - {decay}\)\.add_\(",
        rf"{mean}\.(data\.)?add_\([\w.]+, alpha={decay}\)",
        rf"(self\.)?(?i:tau) \* {mean} \+ \(1(\.0)? - ",
        rf"{mean}\.mul_\((self\.)?(?i:tau)\)\.add_\(",
    )
    for node in program.nodes:
        if not isinstance(node, ast.Assign | ast.Expr) or not len(text(node)) < 200:
            continue
        if any(re.search(one, text(node)) for one in forms):
            yield look_at(node)
