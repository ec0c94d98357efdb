"""Suspects about pairs and teachers: contrast, recommenders, distillation, attacks, meta-learning, averages, views."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import Value, flow
from glassgrad.doctor.reading.nodes import elements, factors_of, is_op, names_in, within
from glassgrad.doctor.reading.program import DEEPEST, Class, Function, Program, argument
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import (
    mentions_any,
    named_values,
    source,
    targets_of,
    text,
    text_around,
    words_in,
)
from glassgrad.doctor.reading.suspects.players.algebra import core, signed, stands_for, word
from glassgrad.doctor.reading.values import Loss, layer, losses, returns

_POSITIVE = re.compile(r"(^|_)(pos|positives?|ap|p)(_|$)|^pos|^d_?ap$|^dp$", re.IGNORECASE)
_NEGATIVE = re.compile(r"(^|_)(neg|negatives?|an|n)(_|$)|^neg|^d_?an$|^dn$", re.IGNORECASE)
_MODEL = re.compile(r"^(model|net|encoder|f|backbone|proj\w*|online\w*|student|siamese|embed\w*|predictor|head|h|g)$")
_USER = re.compile(r"user|(^|_)u(_|$)", re.IGNORECASE)
_ITEM = re.compile(r"item|movie|book|product|song|(^|_)i(_|$)", re.IGNORECASE)
_TEMPERATURE = re.compile(r"temp|(^|_)(tau|t)$", re.IGNORECASE)


# --- pairs ---


@suspects("positive and negative exchanged")
def _exchanged(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        name = program.called(call)
        names = [word(program, one) for one in call.args]
        if "riplet" not in name + text(call.func) or not len(names) >= 3:
            continue
        if _NEGATIVE.search(names[1]) and _POSITIVE.search(names[2]):
            yield look_at(call)
    for node in program.every(ast.BinOp):
        if not is_op(node, ast.Sub):
            continue
        left, right = word(program, node.left), word(program, node.right)
        statement = text(program.statement(node))
        turned = _NEGATIVE.search(left) and _POSITIVE.search(right)
        straight = _POSITIVE.search(left) and _NEGATIVE.search(right)
        distant = re.search(r"dist|^d_|_d$|^d[pn]$|^d_?a[pn]$", f"{left} {right}")
        ranked = re.search(r"-.*(logsigmoid|log\(.*sigmoid)", statement)
        margin = re.search(r"margin|relu\(|clamp\(", statement)
        scores = re.search(r"sim|score|cos|logit|pred", f"{left} {right}")
        if (turned and (ranked or (distant and margin))) or (straight and scores and margin and not distant):
            yield look_at(node)


@suspects("similarity of vectors of any length")
def _lengths(program: Program) -> Iterator[Spot]:
    """Find a product of embeddings over a temperature in a script that never normalises them."""
    if mentions_any(program, re.compile(r"normali[sz]e|cosine|^norm$|l2_?norm", re.IGNORECASE)):
        return
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Div) and _TEMPERATURE.search(word(program, node.right)):
            product = stands_for(program, node.left)
            crossed = (is_op(product, ast.MatMult)) or program.called(product) in {"matmul", "mm"}
            if not crossed or not re.search(r"\.T\b|\.t\(\)|transpose|\.mT", text(product)):
                continue
            if "softmax(" not in text(program.statement(node)):
                yield look_at(product)


@suspects_each("each one compared with itself", ast.expr)
def _itself(program: Program, node: ast.expr) -> object:
    sides: list[ast.expr] = []
    if is_op(node, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and program.called(node) in {"matmul", "mm"} and len(node.args) == 2:
        sides = node.args
    if len(sides) != 2:
        return False
    if re.sub(r"\.T$|\.t\(\)$|\.mT$|\.transpose\(.*\)$", "", text(sides[1])) != text(sides[0]):
        return False
    inside = text_around(program, node)
    masked = re.search(r"eye\(|diag|mask|triu|tril|scatter|inf", inside)
    contrast = re.search(r"temp|tau|/ T\b", inside) and re.search(r"cross_entropy|logsumexp|exp\(|softmax", inside)
    return contrast and not masked and "attn" not in inside and text(sides[0]) != text(sides[1])


_IN_PAIRS = re.compile(r"arange\(.*(repeat_interleave\((2|repeats=2)|repeat\(2, axis| \^ 1\b|xor\(.* 1\)|\) // 2\b)")
_IN_HALVES = re.compile(
    r"arange\((\w+)\)\.(repeat|tile)\(2\)|cat\(\[(torch\.)?arange\((\w+)\), (torch\.)?arange\(\4\)\]|"
    r"arange\(2 \* (\w+)\).* \+ \6\) % \(2 \* \6\)|roll\((\w+|shifts=\w+)\)|"
    r"arange\((?P<all>\w+) // 2, (?P=all)\)|arange\((?P<one>\w+), 2 \* (?P=one)\)|"
    r"arange\((?P<whole>\w+)(, [^()]*)?\) \+ ((?P=whole) // 2|\w+)\) % (?P=whole)"
)
"""Indices of the positives: 0, 0, 1, 1, and 0, 1, 0, 1."""


@suspects("positives of another layout")
def _layout(program: Program) -> Iterator[Spot]:
    """Find views one behind the other, `cat([a, b])`, beside indices for views that take turns, and the reverse."""
    joined = [one for one in program.calls if _joins_views(program, one)]
    kinds = {_joins_views(program, one) for one in joined}
    contrast = re.search(r"cross_entropy|CrossEntropy|logsumexp|\.exp\(|NTXent|log_softmax", source(program))
    if len(kinds) != 1 or not contrast:
        return
    wrong, told = (_IN_PAIRS, "by turns") if kinds == {"halves"} else (_IN_HALVES, "one half behind the other")
    for name, value, statement in named_values(program):
        about = re.search(r"label|target|pos|partner|pair|match|ids|idx|^y$|index|^cols?$|mate", name, re.IGNORECASE)
        rows = [one for one in within(value, ast.Name) if program.called(stands_for(program, one)) == "arange"]
        said = text(value)
        for one in rows:
            said = said.replace(one.id, text(stands_for(program, one)))
        if about and "arange" in said and wrong.search(said):
            yield look_at(statement, joined[0], layout=told, views=shown(joined[0]))


def _joins_views(program: Program, call: ast.Call) -> str:
    """Return how a call joins two views of a batch: "halves" or "turns"; empty for other calls."""
    kind, given = program.called(call), call.args[0] if call.args else None
    if kind not in {"cat", "concat", "concatenate", "vstack", "stack"} or not isinstance(given, ast.List | ast.Tuple):
        return ""
    views = [re.sub(r"[12]|_?(?<![a-z])[ab](?![a-z])|_[ij]\b|\b[ij]\b", "", text(one)) for one in given.elts]
    along = text(argument(call, "dim", 1) or argument(call, "axis", 1)) or "0"
    alike = len(views) == 2 and views[0] == views[1]
    if not alike or re.fullmatch(r"(self\.)?\w*(arange|zeros|ones|eye|mask|label)\w*.*", text(given.elts[0])):
        return ""
    if kind == "stack":
        behind = program.parents.get(call)
        flat = isinstance(behind, ast.Attribute) and behind.attr in {"view", "reshape", "flatten"}
        return {"1": "turns", "0": "halves"}.get(along, "") if flat else ""
    return "halves" if along == "0" else ""


@suspects("same input twice")
def _twice(program: Program) -> Iterator[Spot]:
    """Find `z1 = f(x1)` and `z2 = f(x1)`, and two losses of a pair with the same arguments."""
    seen: dict[tuple[ast.AST, str], tuple[str, ast.stmt]] = {}
    kinds = {one.call for one in losses(program)}
    for name, value, statement in named_values(program):
        if not isinstance(value, ast.Call) or not value.args or isinstance(statement, ast.Return):
            continue
        model = _MODEL.search(program.called(value))
        fitted = value in kinds or re.search(r"criterion|loss_fn|cross_entropy", program.called(value))
        if not model and not fitted:
            continue
        outer = program.parents.get(statement) or program.tree
        first = seen.setdefault((outer, text(value)), (name, statement))
        roots = [re.sub(r"[12ab_ij]|img|text?|image|left|right|anchor|pos|neg", "", one) for one in (first[0], name)]
        paired = roots[0] == roots[1]
        if first[1] is statement or first[0] == name or not paired:
            continue
        if not _changes(program, value, first[1], statement):
            yield look_at(statement, name=first[0])


def _changes(program: Program, value: ast.expr, first: ast.stmt, second: ast.stmt) -> bool:
    """Tell whether a step or an assignment between two statements can change a value."""
    names = names_in(value)
    scope = program.scope(value)
    bound = any(first.lineno < one.line < second.lineno for name in names for one in program.bindings(scope, name))
    return bound or any(first.lineno < one.lineno < second.lineno for one in program.calls_of(".step"))


@suspects_rows("prediction compared with its own view", named_values)
def _own_view(program: Program, _: str, value: ast.expr, statement: ast.stmt) -> object:
    pairs = []
    for call in within(value, ast.Call):
        if len(call.args) >= 2:
            views = r"^(pred|proj|target|online|proj|p|z|q|h)_?(\w*?_)?([12])$"
            names = [re.sub(views, r"\3", word(program, one)) for one in call.args[:2]]
            roots = [word(program, one)[:1] for one in call.args[:2]]
            if set(names) <= {"1", "2"} and roots[0] in {"p", "q", "o"} and roots[0] != roots[1]:
                pairs.append((names, call))
    return len(pairs) == 2 and all(one[0] == one[1] for one, _ in pairs) and look_at(pairs[0][1], statement)


@suspects("users and items exchanged")
def _items(program: Program) -> Iterator[Spot]:
    for name, value, statement in named_values(program):
        if program.called(value) == "Embedding" and isinstance(value, ast.Call) and value.args:
            sizes = " ".join(words_in(value.args[0]))
            if _are_crossed(name, sizes):
                yield look_at(statement)
    for call in program.calls:
        name, given = program.called(call), word(program, call.args[0]) if len(call.args) == 1 else ""
        if re.search(r"emb|bias", name) and _are_crossed(name, given):
            yield look_at(call)


def _are_crossed(name: str, other: str) -> bool:
    """Tell whether one name is about users and the other one about items."""
    users, items = ([bool(kind.search(one)) for one in (name, other)] for kind in (_USER, _ITEM))
    return users[0] != users[1] and items == users[::-1]


@suspects_each("negatives taken for likely", ast.Call)
def _likely(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `logsigmoid(neg_score)`: negative sampling needs logsigmoid(-neg_score)."""
    given = program.operand(call)
    if program.called(call) == "logsigmoid" and given is not None and not isinstance(given, ast.BinOp):
        origin = text(stands_for(program, core(program, given)))
        minus = re.search(r"neg\(\)|^-|\(-|1 - ", text(given) + origin)
        if re.search(r"(^|_)neg", word(program, given)) and not minus:
            yield look_at(call)


# --- teachers ---


@suspects_each("teacher and student exchanged", losses)
def _teacher(program: Program, one: Loss) -> Iterator[Spot]:
    """Find a divergence whose first argument is the teacher's, or with a temperature for one of the two."""
    if one.kind != "kl_div" or one.target is None:
        return
    sides = [f"{text(side)} {text(stands_for(program, core(program, side)))}" for side in (one.input, one.target)]
    teaches = [bool(re.search(r"teacher|(^|\W)t_(out|logits)|soft_target|old_", side)) for side in sides]
    learns = [bool(re.search(r"student|(^|\W)s_(out|logits)", side)) for side in sides]
    cooled = [bool(re.search(r"/ *(self\.)?\w*(temp|T\b|tau)", side)) for side in sides]
    if teaches[0] and learns[1] and not learns[0] and not teaches[1]:
        what = "the first argument is the student's log-probability, the second the teacher's probability"
        yield look_at(one.call, what=what)
    elif cooled[0] != cooled[1] and all("softmax" in side for side in sides):
        yield look_at(one.call, what="the temperature divides the scores of one side only")


_LESSON = re.compile(r"loss|distil|soft|kd|kl|(^|_)ce(_|$)", re.IGNORECASE)


@suspects("teacher compared with itself")
def _taught_itself(program: Program) -> Iterator[Spot]:
    """Find `-(softmax(t / T) * log_softmax(t / T)).sum()` and the same kl_div of a model that nobody trains."""
    pairs = [(one, one.left, one.right) for one in program.every(ast.BinOp) if is_op(one, ast.Mult)]
    for node, left, right in [*pairs, *((one.call, one.input, one.target) for one in losses(program))]:
        sides = [stands_for(program, core(program, one)) for one in (left, right) if one is not None]
        kinds = {program.called(one) for one in sides}
        function = program.function(node)
        said = targets_of(program, node) or (function.name if function is not None else "")
        given = [program.operand(one) for one in sides if isinstance(one, ast.Call)]
        if kinds != {"softmax", "log_softmax"} or text(given[0]) != text(given[1]) or not _LESSON.search(said):
            continue
        for name in within(given[0], ast.Name):
            made = program.value_of(name)
            if isinstance(made, ast.Call) and _is_frozen(program, text(made.func)):
                learns = next(one for one in sides if program.called(one) == "log_softmax")
                yield look_at(learns, node, teacher=text(made.func))


def _is_frozen(program: Program, model: str) -> bool:
    """Tell whether a model is a teacher by its name, or has parameters that a script freezes."""
    freezes = rf"{re.escape(model)}\.(requires_grad_\(False|parameters\(\):\s+\w+\.requires_grad(_\(| = )False)"
    return bool(re.search("teacher", model) or re.search(freezes, source(program)))


@suspects_each("temperature not made good", losses)
def _made_good(program: Program, one: Loss) -> object:
    inside = text_around(program, one.call)
    cooled = re.search(r"/ *(self\.)?\w*(temp\w*|T\b|tau)", inside)
    squared = re.search(r"(temp\w*|\bT|tau|args\.T)\)? ?(\*\* ?2|\* ?(self\.|args\.)?(temp|T\b|tau))|pow\(", inside)
    return one.kind == "kl_div" and cooled and not squared and "teacher" in inside and look_at(one.call)


@suspects_each("teacher in training mode", ast.Call)
def _teaching(program: Program, call: ast.Call) -> object:
    """Find a teacher that the training calls and that nothing puts into evaluation mode."""
    whole = text_around(program, program.tree)
    name = program.called(call)
    if not re.match(r"^teacher(_?(net|model))?$|^(model_)?(t|teacher)_(net|model)$", name) or not call.args:
        return False
    calm = re.search(rf"{name}\.eval\(|{name} = [^\n]*\.eval\(|teacher\w*\.eval\(|teacher\w*\.train\(False", whole)
    if calm or ".backward()" not in whole:
        return False
    return not re.search(rf"{name}\.parameters\(\)[^\n]*lr|ema|momentum", whole)


@suspects_each("temperature for some of the scores", ast.Call)
def _some(program: Program, call: ast.Call) -> object:
    """Find `cat([pos, neg / T])`: only some of the scores in one softmax are divided."""
    given = call.args[0] if program.called(call) in {"cat", "concat", "hstack"} and call.args else None
    parts = elements(given)
    if len(parts) != 2:
        return False
    said = [f"{text(one)} {text(stands_for(program, one))}" for one in parts]
    cooled = [bool(re.search(r"/ *(self\.)?\w*(temp|tau|T\b)", one)) for one in said]
    return cooled[0] != cooled[1] and _POSITIVE.search(word(program, parts[0]))


@suspects_rows("two terms with one weight", named_values)
def _weights(program: Program, name: str, value: ast.expr, _: ast.stmt) -> Iterator[Spot]:
    """Find `alpha * a + alpha * b` and `(1 - alpha) * a + (1 - alpha) * b`."""
    terms = signed(program, value)
    if "loss" in name and len(terms) == 2:
        shares = [[one for one in map(text, factors_of(part)) if "loss" not in one] for _, part in terms]
        found = [{one for one in side if re.search(r"alpha|lam|beta|weight|ratio|mix", one)} for side in shares]
        if found[0] and found[0] == found[1] and all(len(factors_of(part)) == 2 for _, part in terms):
            yield look_at(value)


# --- gradients of another kind ---


@suspects_each("step uphill", operations(ast.Add | ast.Sub))
def _uphill(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find inner steps `w + lr * g`, and attacks `x - eps * grad.sign()`."""
    parts = factors_of(node.right)
    signs = [one for one in parts if program.called(one) == "sign" and re.search(r"grad|(^|\W)g\b", text(one))]
    meant = re.search(r"targeted|y_target|target_label|Lion|class \w*\(.*Optimizer", source(program))
    sized = len(parts) > 1 and re.search(r"eps|alpha|step", text(node.right))
    if signs and isinstance(node.op, ast.Sub) and sized and not meant:
        yield look_at(node, what="lowers the loss of the true label, where an attack raises it")
    rate = any(re.search(r"(^|_)(lr|alpha|step_size|rate)(_|$)|inner", word(program, one)) for one in parts)
    slope = any(text(one).endswith(".grad") for one in parts)
    slope = slope or any(re.search(r"^(g|grad|grads)$|\.grad$", word(program, one)) for one in parts)
    inner = re.search(r"fast|inner|adapt|maml|meta|zip\(", text_around(program, node))
    added = isinstance(node.op, ast.Add) and len(parts) == 2 and "advers" not in source(program)
    if added and inner and rate and slope and not signs:
        yield look_at(node, what="goes along the gradient and so raises the loss")


@suspects("gradients of an attack kept")
def _kept(program: Program) -> Iterator[Spot]:
    """Find an attack with its own backward pass between zero_grad and the step: its gradients go into the step."""
    named_so = [name for name in program.functions if re.search(r"attack|fgsm|pgd|advers|perturb", name)]
    attacks = [name for name in named_so if ".backward()" in text(program.functions[name])]
    attacks = [name for name in attacks if not re.search(r"zero_grad|autograd\.grad", text(program.functions[name]))]
    for name in attacks:
        for call in [*program.calls_of(name), *program.calls_of(f".{name}")]:
            statement = program.statement(call)
            body = getattr(program.parents.get(statement), "body", [])
            at = body.index(statement) if isinstance(body, list) and statement in body else -1
            before, behind = [text(one) for one in body[: max(at, 0)]], [text(one) for one in body[at + 1 :]]
            passes = next((i for i, one in enumerate(behind) if ".backward()" in one), None)
            cleared = any("zero_grad" in one for one in behind[:passes])
            if at >= 0 and passes is not None and any("zero_grad" in one for one in before) and not cleared:
                yield spot(statement, text=shown(call))


@suspects("reversal that reverses nothing")
def _reversal(program: Program) -> Iterator[Spot]:
    """Find a gradient reversal whose backward has no minus sign, and one beside a loss that is subtracted."""
    names = [name for name in program.classes if re.search(r"revers|grl", name, re.IGNORECASE)]
    turned: list[Class] = [program.classes[name] for name in names]
    for one in turned:
        backward: Function | None = one.methods.get("backward")
        for node in within(backward, ast.Return) if backward is not None else ():
            if node.value is not None and not re.search(r"-|neg", text(backward).replace("->", "")):
                yield look_at(node, what="passes the gradient on with its sign")
    if turned:
        for name, value, _ in named_values(program):
            lowered = [part for sign, part in signed(program, value) if sign < 0]
            lowered = [part for part in lowered if re.search(r"domain|adv", text(part))]
            if "loss" in name and lowered:
                yield look_at(value, what="subtracts a loss whose gradient is reversed already")


@suspects_rows("average into one of its parts", named_values)
def _average(program: Program, name: str, value: ast.expr, statement: ast.stmt) -> Iterator[Spot]:
    """Find `avg = states[0]` that a loop adds to: the first client's weights change as well."""
    first = isinstance(value, ast.Subscript) and text(value.slice) == "0"
    if first and re.search(r"avg|average|global|mean|agg", name):
        inside = text_around(program, statement)
        if re.search(rf"\b{re.escape(name)}\[\w+\] (\+=|= {re.escape(name)})", inside):
            yield look_at(statement)


# --- the order of parts ---


@suspects("parts taken in another order")
def _order(program: Program) -> Iterator[Spot]:
    """Find `a, c, b = f()` where f returns a, b, c, and calls that give named values to other parameters."""
    puts = [call for call in program.calls if program.called(call) in {"append", "push"} and len(call.args) == 1]
    stored = [one.args[0].elts for one in puts if isinstance(one.args[0], ast.Tuple)]
    for node in program.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.For) else None
        if not isinstance(target, ast.Tuple) or len(target.elts) < 2:
            continue
        value = node.value if isinstance(node, ast.Assign) else node.iter if isinstance(node, ast.For) else None
        given = _given(program, value)
        loose = stored if isinstance(node, ast.For) or (value is not None and "zip(*" in text(value)) else []
        for parts in [*given, *loose]:
            if _is_moved([_root(text(one)) for one in target.elts], [_root(text(one)) for one in parts]):
                place = node if isinstance(node, ast.stmt) else program.statement(target)
                yield spot(place, text=shown(target), other=", ".join(text(one) for one in parts))
                break
    for call in program.calls:
        function = program.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if function is not None and not call.keywords and len(call.args) > 1:
            wanted = [one.arg for one in function.args.args][: len(call.args)]
            if _is_moved([_root(text(one)) for one in call.args], [_root(one) for one in wanted]):
                yield look_at(call, other=", ".join(wanted))


def _given(program: Program, value: ast.expr | None) -> list[list[ast.expr]]:
    """Return the tuples that a called function or model of the script returns."""
    if not isinstance(value, ast.Call):
        return []
    name = program.called(value)
    function = program.functions.get(name) if name not in {"sample", "step"} else None
    made = function if isinstance(value.func, ast.Name) else None
    if made is None and isinstance(value.func, ast.Name):
        maker = program.value_of(value.func)
        owner = program.classes.get(program.called(maker)) if isinstance(maker, ast.Call) else None
        made = owner.methods.get("forward") if owner is not None else None
    returned = [one.value for one in within(made, ast.Return)] if made is not None else []
    return [one.elts for one in returned if isinstance(one, ast.Tuple)]


def _root(name: str) -> str:
    """Return a name without what says that it holds several, or a batch."""
    name = re.sub(r"^self\.|^(b|batch|mb)_|_(b|batch|t|list|tensor)$", "", name.lower())
    return name.removesuffix("s")


def _is_moved(taken: list[str], given: list[str]) -> bool:
    plain = all(re.fullmatch(r"[a-z]\w+", one) for one in (*taken, *given))
    return plain and len(set(taken)) == len(taken) and sorted(taken) == sorted(given) and taken != given


# --- two views of an example that learn from each other ---

_APART = re.compile(
    r"detach|no_grad|stop_?grad|cross_entropy|CrossEntropy|logsumexp|arange|eye\(|diag|std\(|var\(|margin|queue|\.data\b"
    r"|neg(?!(ative)?_?(cos|sim))"
)
"""What keeps projections apart: a gradient that stops, other examples, a spread."""
_NEAR = re.compile(r"cos|simil|mse|criterion|loss|dist|norm", re.IGNORECASE)


@suspects("both views move towards each other")
def _collapse(program: Program) -> Iterator[Spot]:
    """Find `D(p1, z2) + D(p2, z1)` behind `p1, p2 = predictor(z1), predictor(z2)` with targets that get gradients."""
    pairs = [one for one in program.calls if len(one.args) >= 2 and _is_near(program, one)]
    for one, other in itertools.combinations(pairs, 2):
        if text(one.func) != text(other.func) or program.function(one) is not program.function(other):
            continue
        first, second = _predicted(program, one.args[0]), _predicted(program, other.args[0])
        targets = _origin(program, Value(one.args[1])), _origin(program, Value(other.args[1]))
        crossed = first is not None and second is not None and first[0] == second[0] and first[1] != second[1]
        if first is None or second is None or not crossed or targets != (second[1], first[1]):
            continue
        if not any(_is_cut(program, target.node) for target in targets):
            frame = targets[0].frame if targets[0].frame == targets[1].frame else None  # of the pass that returns both
            around = frame.function if frame is not None and frame.function is not program.function(one) else None
            function = around if isinstance(around, ast.FunctionDef) else _entered(program, one)
            inner = list(returns(program, function)) if function is not None else []
            yield spot(inner[0] if len(inner) == 1 else one, one, other, text=shown(one), other=shown(other))


def _entered(program: Program, call: ast.Call) -> Function | None:
    """Return the function or the forward pass of the script that a call enters."""
    callee = flow(program).callee(call)
    return callee.function if callee is not None and isinstance(callee.function, ast.FunctionDef) else None


def _is_near(program: Program, call: ast.Call) -> bool:
    """Tell whether a call compares two values, and nothing in it keeps values apart."""
    function, found = _entered(program, call), layer(program, call.func)
    if function is not None:
        return bool(_NEAR.search(text(function))) and not _APART.search(text(function))
    name = found.name if found is not None else program.called(call)
    return bool(_NEAR.search(name)) and not _APART.search(name)


def _predicted(program: Program, node: ast.expr) -> tuple[str, Value] | None:
    """Return the module that makes a prediction of one projection, and the call that makes the projection."""
    value = _origin(program, Value(node))
    made = value.node
    if not isinstance(made, ast.Call) or len(made.args) != 1 or layer(program, made.func) is None:
        return None
    return text(made.func), _origin(program, Value(made.args[0], value.frame))


def _origin(program: Program, value: Value) -> Value:
    """Return the call that makes a value, through names and the parts of results."""
    for _ in range(2 * DEEPEST):
        before = flow(program).before(value) if value.path or not isinstance(value.node, ast.Call) else None
        if before is None or len(before) != 1:
            break
        value = before[0]
    return value


def _is_cut(program: Program, node: ast.expr) -> bool:
    """Tell whether no gradient enters what makes a value."""
    outer = [one for one in program.outward(node) if isinstance(one, ast.With)]
    function = program.function(node)
    decorators = [text(one) for one in function.decorator_list] if function is not None else []
    said = [*decorators, *(text(item) for one in outer for item in one.items)]
    return any("no_grad" in one for one in said)
