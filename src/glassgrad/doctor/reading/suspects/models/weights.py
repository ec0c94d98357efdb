"""Suspects about the weights of models: how they begin, where they are kept, what is shared, what cuts gradients."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.names import last, named
from glassgrad.doctor.reading.nodes import ident, is_name, is_op, method_of, names_in, object_of, target_of, within
from glassgrad.doctor.reading.program import FUNCTIONS, Class, Function, Program, argument, constant
from glassgrad.doctor.reading.rule import Node, Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import calls_of, text
from glassgrad.doctor.reading.suspects.models.layers import MATRICES, NORMALISING, applied, forward_nodes, forwards
from glassgrad.doctor.reading.values import has_weights, layer, library_name

_VECTORS = re.compile(r"pos|token|query|queries|cls|emb|prompt|code|slot|latent|memory|proto", re.IGNORECASE)
_FIXED = re.compile(
    r"^_?(b|n)$|freq|fourier|basis|noise|mask|grid|random|hash|proj|anchor|hidden|state|buffer|running|mean|std|ema|count",
    re.IGNORECASE,
)
_LEARNT = re.compile(
    r"^_?(w\d*|b\d+|weights?\d*|bias|alpha|beta|gamma|scale|gain|temperature|theta|logits?|log_\w+|emb\w*)$"
)
_ZERO = re.compile(r"zero|last|final|out|proj|head|lora|gate|res|film|modul|ada|fc2|second|scale", re.IGNORECASE)
_ROUNDS = named("round floor ceil sign argmax trunc heaviside")


def _sizes(call: ast.Call) -> int:
    """Return the number of written sizes of `torch.randn(a, b)`."""
    given = call.args[0] if call.args else None
    return len(given.elts) if isinstance(given, ast.Tuple | ast.List) else len(call.args)


def _parameters(program: Program) -> Iterator[tuple[ast.Call, ast.expr, str, Class | None]]:
    """Yield the calls that make parameters, with their first numbers, and the attribute that holds each."""
    for call in program.calls:
        if library_name(program, call) == "Parameter" and call.args:
            outer = program.parents.get(call)
            target = target_of(outer)
            yield call, call.args[0], target.attr if isinstance(target, ast.Attribute) else "", program.owner(call)


# --- how weights begin ---


@suspects_each("weights drawn too large", ast.Call)
def _too_large(program: Program, call: ast.Call) -> object:
    """Find `init.normal_(w)` with a deviation of 1, `uniform_(w)` with 0 to 1, and a large gain."""
    full = program.names.full(call.func)
    method = not full and isinstance(call.func, ast.Attribute)
    name = call.func.attr if isinstance(call.func, ast.Attribute) and method else last(full)
    if not full.startswith("torch.nn.init.") and not (method and re.search(r"weight|\bp\b|param", _on(call))):
        return False
    at = 1 if method else 2
    given = argument(call, "std" if name == "normal_" else "b", at)
    size = setting(program, given)
    large = name in {"normal_", "uniform_", "trunc_normal_"} and not (given is not None and size is None)
    filled = _on(call) if method else text(call.args[0]) if call.args else ""
    bias = re.search("bias|norm|embed|grad|epsilon|noise", filled)
    gain = setting(program, argument(call, "gain", 1)) if name.startswith(("xavier", "orthogonal")) else None
    return (large and (size is None or size >= 0.4) and not bias) or (gain is not None and gain >= 3)


def _on(call: ast.Call) -> str:
    return text(object_of(call))


_SPREADS = re.compile("bias|^b|lora|logits|rho|sigma|std|var$", re.IGNORECASE)
"""Names of parameters that may begin equal: biases, and deviations of weights that are drawn."""


@suspects("weights that begin equal")
def _equal(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        full = program.names.full(call.func)
        filled = full in {f"torch.nn.init.{one}" for one in ("zeros_", "ones_", "constant_")} and call.args
        said = text(call.args[0]) if filled else ""
        if method_of(call) in {"zero_", "fill_"} and not full:
            said = text(object_of(call))
        around = [text(one.test) for one in program.outward(call) if isinstance(one, ast.If)]
        known = "weight" in said and not re.search("norm|bn|ln|emb|bias", said + " ".join(around), re.IGNORECASE)
        if known and not _ZERO.search(said) and not re.search(r"grad|latent|_hh|logits", said):
            yield look_at(call)
    for made, first, name, _ in _parameters(program):
        alike = isinstance(first, ast.Call) and library_name(program, first) in {"zeros", "ones", "full"}
        matrix = alike and isinstance(first, ast.Call) and _sizes(first) == 2 and constant(first.args[0]) != 1
        if matrix and not _VECTORS.search(name) and not _SPREADS.search(name):
            yield look_at(made)


@suspects_rows("parameter with numbers of chance", _parameters)
def _never_set(program: Program, made: ast.Call, first: ast.expr, name: str, owner: Class | None) -> object:
    bare = isinstance(first, ast.Call) and library_name(program, first) in {"empty", "Tensor", "FloatTensor"}
    if (
        not bare
        or owner is None
        or (isinstance(first, ast.Call) and first.args and isinstance(first.args[0], ast.List | ast.ListComp))
    ):
        return False
    said = text(owner.node)
    every = re.search(r"\.(parameters|_parameters|named_parameters)\(", said)
    sets = re.search(rf"init\w*\.?\w*\([^)]*self\.{name}\b|self\.{name}(\.data)?\.\w+_\(|self\.{name}\.data", said)
    return not sets and not every and look_at(made, name=name)


@suspects_rows("matrix drawn without a scale", _parameters)
def _unscaled(program: Program, made: ast.Call, first: ast.expr, name: str, owner: Class | None) -> Iterator[Spot]:
    drawn = library_name(program, first) if isinstance(first, ast.Call) else ""
    if drawn in {"randn", "rand"} and isinstance(first, ast.Call) and _sizes(first) >= 2:
        narrow = all(constant(one) == 1 for one in first.args[:1])
        said = text(owner.node) if owner is not None else ""
        multiplies = re.search(rf"@ \(?self\.{name}\b|(mm|matmul|linear|einsum)\([^)]*self\.{name}\b", said)
        filled = re.search(rf"_\(self\.{name}\b", said)
        if not _VECTORS.search(name) and not narrow and multiplies and not filled:
            yield look_at(made)


@suspects("initialisation never applied")
def _never_applied(program: Program) -> Iterator[Spot]:
    """Find a function that fills weights and that nothing names."""
    used = {one.attr for one in program.every(ast.Attribute)}
    used |= {one.id for one in program.every(ast.Name)}
    for node in program.nodes:
        if not isinstance(node, FUNCTIONS) or node.name.startswith("__") or node.name in used:
            continue
        owner = program.owner(node)
        plain_module = owner is None or set(owner.bases) <= {"torch.nn.Module", "object"}
        fills = [one for one in within(node, ast.Call) if program.names.full(one.func).startswith("torch.nn.init.")]
        if fills and plain_module and re.search("init|reset|weight", node.name):
            yield spot(node, text=node.name)


@suspects("class compared with what it never is")
def _never_this(program: Program) -> Iterator[Spot]:
    """Find `m == nn.Linear`, `type(m) == "Linear"` and `classname.find("conv")`."""
    for node in program.every(ast.Compare):
        left, right = node.left, node.comparators[0]
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.Is | ast.In):
            continue
        is_class = re.match(r"torch\.nn\.[A-Z]\w+$", program.names.full(right))
        typed = isinstance(left, ast.Call) and text(left.func) == "type"
        plain_name = isinstance(left, ast.Name) and not re.search("cls|class|type|kind|layer_t", left.id)
        if (is_class and plain_name) or (isinstance(constant(right), str) and typed):
            yield look_at(node)
    for call in [*program.calls_of(".find"), *program.calls_of(".startswith")]:
        said = constant(call.args[0]) if call.args else None
        small = isinstance(said, str) and said in {"conv", "linear", "batchnorm", "layernorm", "embedding"}
        if small and re.search("class_?name|__name__", _on(call)):
            yield look_at(call)


@suspects_each("weights drawn again after loading", calls_of(".apply"))
def _drawn_again(program: Program, call: ast.Call) -> object:
    given = text(call.args[0]) if call.args else ""
    target = _on(call)
    loads = [one for one in program.calls_of(".load_state_dict") if _on(one) == target and one.lineno < call.lineno]
    same = [one for one in loads if program.function(one) is program.function(call) and _both(program, one, call)]
    return re.search("init|weight", given) and same and look_at(call, same[0], loaded=shown(same[0]))


def _both(program: Program, first: ast.AST, second: ast.AST) -> bool:
    """Tell whether a run can reach both of two nodes: no condition has them in its two branches."""
    around = {one for one in program.outward(first) if isinstance(one, ast.If)}
    for one in program.outward(second):
        if isinstance(one, ast.If) and one in around and any(second in ast.walk(part) for part in one.orelse):
            return any(first in ast.walk(part) for part in one.orelse)
    return True


# --- where weights are kept ---


@suspects_each("parameter made in forward", forward_nodes(ast.Call))
def _made_anew(program: Program, node: ast.Call) -> object:
    once = any(isinstance(one, ast.If) for one in program.outward(node))
    return library_name(program, node) == "Parameter" and not once


@suspects_each("numbers that nobody trains", Program.modules)
def _plain_tensors(program: Program, owner: Class) -> Iterator[Spot]:
    """Find random tensors of modules, and buffers with names of weights."""
    for name, bounds in owner.attributes.items():
        for bound in bounds:
            value = bound.value
            while isinstance(value, ast.BinOp):
                value = value.left if isinstance(value.left, ast.Call) else value.right
            made = library_name(program, value) if isinstance(value, ast.Call) else ""
            buffer = isinstance(bound.statement, ast.Call)
            drawn = made in {"randn", "rand", "normal"} and not _FIXED.search(name)
            learnt = made in {"randn", "rand", "zeros", "ones", "full", "tensor"} and _LEARNT.match(name)
            outside = bound.item is None and (buffer or _in_init(program, bound.statement))
            if not outside or not (drawn or learnt) or not isinstance(value, ast.Call):
                continue
            if "requires_grad" not in text(program.statement(value)):
                yield spot(value, text=f"self.{name} = {shown(value, 40)}")


def _in_init(program: Program, node: ast.AST) -> bool:
    function = program.function(node)
    return function is not None and function.name == "__init__"


def _is_own(program: Program, call: ast.Call) -> bool:
    """Tell whether a call makes a module of a class of the script."""
    known = program.classes.get(getattr(call.func, "id", ""))
    return known is not None and known.is_module


@suspects("layer never used")
def _unused(program: Program) -> Iterator[Spot]:
    read = {one.attr for one in program.every(ast.Attribute) if isinstance(one.ctx, ast.Load)}
    for owner, _ in forwards(program):
        said = text(owner.node)
        if re.search(r"getattr|children\(|modules\(|_modules|exec\(", said) or len(owner.bases) != 1:
            continue
        for name, bounds in owner.attributes.items():
            value = bounds[-1].value if len(bounds) == 1 else None
            if name in read or not isinstance(value, ast.Call):
                continue
            if has_weights(program, value) or _is_own(program, value):
                yield spot(value, text=f"self.{name} = {shown(value, 40)}", name=name)


# --- what is shared ---


@suspects("one layer in several places")
def _shared(program: Program) -> Iterator[Spot]:
    """Find `[block for _ in range(n)]`, `[block] * n`, `Sequential(a, act, a)` and `self.b = self.a`."""
    for node in program.nodes:
        if isinstance(node, ast.ListComp) and isinstance(node.elt, ast.Name):
            targets = {one.id for part in node.generators for one in within(part.target, ast.Name)}
            outer = program.parents.get(node)
            outer = program.parents.get(outer) if isinstance(outer, ast.Starred) else outer
            kept = isinstance(outer, ast.Call) and library_name(program, outer) in {"ModuleList", "Sequential"}
            if kept and node.elt.id not in targets:
                yield look_at(node)
        elif is_op(node, ast.Mult) and isinstance(node.left, ast.List):
            names = [one for one in node.left.elts if isinstance(one, ast.Name | ast.Attribute)]
            if any(_has(program, one) for one in names):
                yield look_at(node)
        elif isinstance(node, ast.Call) and library_name(program, node) in {"Sequential", "ModuleList"}:
            yield from _repeated(program, node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and _in_init(program, node):
            both = [text(one) for one in (node.targets[0], node.value)]
            if all(one.startswith("self.") and one.count(".") == 1 for one in both) and _has(program, node.value):
                yield look_at(node)


def _repeated(program: Program, call: ast.Call) -> Iterator[Spot]:
    given = call.args[0].elts if call.args and isinstance(call.args[0], ast.List) else call.args
    names = [one for one in given if isinstance(one, ast.Name | ast.Attribute)]
    again = [one for at, one in enumerate(names) if text(one) in {text(before) for before in names[:at]}]
    yield from (look_at(one, call) for one in again[:1] if _has(program, one))


def _has(program: Program, node: ast.expr) -> bool:
    found = layer(program, node)
    return found is not None and has_weights(program, found.call)


@suspects_rows("layer called at two places", forwards)
def _called_twice(program: Program, _: Class, forward: Function) -> Iterator[Spot]:
    """Find a linear layer, a convolution or a norm that one pass calls a second time on its way."""
    seen: dict[str, ast.Call] = {}
    for node in sorted(ast.walk(forward), key=lambda one: (getattr(one, "lineno", 0), getattr(one, "col_offset", 0))):
        if not isinstance(node, ast.Call) or applied(program, node)[0] not in MATRICES | NORMALISING:
            continue
        if any(isinstance(one, ast.If | ast.IfExp | ast.For | ast.While) for one in program.outward(node)):
            continue
        name = text(node.func)
        if name in seen and name.startswith("self.") and _same_chain(seen[name], node):
            yield spot(node, seen[name], text=shown(node.func), first=str(seen[name].lineno))
        seen.setdefault(name, node)


def _same_chain(first: ast.Call, second: ast.Call) -> bool:
    """Tell whether two calls have inputs of one name, as in `x = self.a(x)`, and are no two branches."""
    names = [names_in(call) - {"self", "F", "torch"} for call in (first, second)]
    return first in ast.walk(second) or bool(names[0] & names[1])


@suspects_each("tied by a copy", ast.Assign)
def _copied(program: Program, node: ast.Assign) -> object:
    if not isinstance(node.targets[0], ast.Attribute):
        return False
    target, value = text(node.targets[0]), node.value
    data = re.search(r"\.weight\.data$", target) and re.match(r"[\w.]+\.weight\.data(\.\w+\(\))?$", text(value))
    inner = value.args[0] if isinstance(value, ast.Call) and value.args else None
    called = last(program.names.full(value.func)) or text(value.func) if isinstance(value, ast.Call) else ""
    whole = inner is not None and re.search(r"weight(\.data|\.t\(\)|\.T|\.clone\(\))*$", text(inner))
    copied = data or (target.endswith("weight") and whole and called in {"Parameter", "deepcopy", "copy"})
    return copied and re.search(r"emb|enc|tok|wte", text(value))


@suspects_each("shallow copy of a model", ast.Call)
def _shallow(program: Program, call: ast.Call) -> object:
    shallow = program.names.full(call.func) == "copy.copy" and call.args
    return shallow and (layer(program, call.args[0]) is not None or re.search("model|net|block|layer", text(call)))


@suspects_rows("loop forgets its result", forwards)
def _forgets(program: Program, _: Class, forward: Function) -> Iterator[Spot]:
    """Find `for layer in self.layers: out = layer(x)`, where x stays what it was."""
    for loop in (node for node in within(forward, ast.For) if not node.orelse):
        names = names_in(loop.target)
        sets = {one.id for one in within(loop, ast.Name) if isinstance(one.ctx, ast.Store)}
        for node in loop.body:
            call = node.value if isinstance(node, ast.Assign) else None
            target = target_of(node)
            runs = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names
            given = names_in(call) if call is not None else set()
            reads = sum(is_name(one, ident(target)) for one in ast.walk(loop))
            if runs and isinstance(target, ast.Name) and not (given - names) & sets and reads == 1:
                yield look_at(node, loop)


# --- what cuts gradients ---


@suspects("gradient cut in the forward pass")
def _cut(program: Program) -> Iterator[Spot]:
    for _, forward in forwards(program):
        for node in ast.walk(forward):
            said = _cutting(program, node)
            around: Node = program.statement(node)
            whole = text(around)
            through = whole.count("detach") and re.search(r"\+ \(|- \w+\)?\.detach|x_hat|quant", whole)
            if said and not through and not re.search("mask|len|idx|index|mean|var|stat|max", whole):
                yield spot(node if isinstance(node, ast.expr) else around, text=said)


def _cutting(program: Program, node: ast.AST) -> str:
    """Return the text of what cuts a gradient; empty for anything else."""
    if isinstance(node, ast.With):
        held = text(node.items[0].context_expr)
        return held if "no_grad" in held else ""
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
        return shown(node)
    name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    return shown(node) if name in {"detach", "numpy", "tolist", "item"} else ""


@suspects_each("step without a derivative in forward", forward_nodes(ast.Call))
def _flat_steps(program: Program, node: ast.Call) -> object:
    """Find rounding, signs, argmax and comparisons made numbers in a forward pass."""
    name, operand = applied(program, node)
    over = operand.left if isinstance(operand, ast.Compare) else None
    hard = name in {"float", "to", "type"} and over is not None and not isinstance(over, ast.Constant)
    whole = text(program.statement(node))
    if re.search(r"detach|mask|rand|pad|len|bernoulli|training|== |!= |valid|embed|lookup", whole):
        return False
    return (name in _ROUNDS or hard) and layer(program, node.func) is None


@suspects_rows("input changed in place", forwards)
def _changes_input(program: Program, _: Class, forward: Function) -> Iterator[Spot]:
    given = {one.arg for one in forward.args.args[1:]}
    for node in forward.body:
        target: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else target
        base = target.value if isinstance(target, ast.Subscript) else target
        in_place = isinstance(target, ast.Subscript) or isinstance(node, ast.AugAssign)
        if isinstance(node, ast.Assign | ast.AugAssign) and in_place and getattr(base, "id", "") in given:
            yield look_at(node, name=getattr(base, "id", ""))
        given -= {one.id for one in within(node, ast.Name) if isinstance(one.ctx, ast.Store)}
