"""Suspects about generative models: adversaries, autoencoders with a latent code, codebooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.nodes import factors_of, is_op, target_text, within
from glassgrad.doctor.reading.program import Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import mentions_any, named_values, text, text_around, words_in
from glassgrad.doctor.reading.suspects.players.algebra import core, signed, stands_for, word
from glassgrad.doctor.reading.values import end, end_of_layer, layer, losses

_JUDGE = re.compile(r"^(net_?)?d(is|isc\w*|_net|_[ab])?$|discriminator|critic", re.IGNORECASE)
_MAKER = re.compile(r"^(net_?)?g(en|en\w*|_net|_[ab]{1,2})?$|generator", re.IGNORECASE)
_MAKER_LOSS = re.compile(
    r"(^|_)(g|gen|generator)_?(\w*_)?loss|loss_?(g|gen\w*)(_|$)|err_?g$|g_?err|adv\w*_loss", re.IGNORECASE
)
_JUDGE_LOSS = re.compile(
    r"(^|_)(d|disc\w*|critic)_?(\w*_)?loss|loss_?(d|disc\w*|critic)(_|$)|err_?d(_|$)", re.IGNORECASE
)
_FAKE = re.compile(r"fake|gen(erated)?(_|s|$)|synth|x_hat|recon", re.IGNORECASE)
_LOGVAR = re.compile(r"log_?(var|v|sigma_?2|sigma_?sq)\w*$|lv$", re.IGNORECASE)
_LOG_STD = re.compile(r"log_?(std|sigma|stddev|sd|var|variance)s?$", re.IGNORECASE)
_STD = re.compile(r"^(std|sigma|stddev|scale)\w*$", re.IGNORECASE)
_MEAN = re.compile(r"^(z_)?(mu|mean|m|loc)(_\w+)?$", re.IGNORECASE)
_LABEL = re.compile(r"fakes?|valid|real|y_\w+|\w*label\w*|\w*target\w*|zeros\w*|ones\w*|full\w*|0|1", re.IGNORECASE)
_CODES = re.compile("codebook|quanti|commit|vq", re.IGNORECASE)
_NOISE = re.compile(r"^(eps|epsilon|noise|e|z|n)\w*$", re.IGNORECASE)


# --- adversaries ---


def _judged(program: Program, node: ast.AST, depth: int = 1) -> Iterator[ast.Call]:
    """Yield the calls of a discriminator in an expression and in what its variables stand for."""
    for one in ast.walk(node):
        inner = stands_for(program, one) if isinstance(one, ast.Name) else one
        if inner is not one and depth > 0:
            yield from _judged(program, inner, depth - 1)
        elif isinstance(one, ast.Call) and one.args and _JUDGE.search(program.called(one)):
            yield one


def _is_game(program: Program) -> bool:
    """Tell whether the script calls a generator and a discriminator."""
    names = {program.called(one) for one in program.calls}
    return any(map(_JUDGE.search, names)) and (any(map(_MAKER.search, names)) or mentions_any(program, _FAKE))


@suspects_rows("fakes cut off from their generator", named_values)
def _cut(program: Program, name: str, value: ast.expr, _: ast.stmt) -> Iterator[Spot]:
    """Find `D(fake.detach())` in the loss of a generator."""
    if not _MAKER_LOSS.search(name) or _JUDGE_LOSS.search(name):
        return
    for call in dict.fromkeys(_judged(program, value, 3)):
        cut = [one for one in call.args if "detach()" in text(one)]
        fakes = [one for one in cut if _FAKE.search(text(one)) or len(call.args) == 1 or _is_made(program, one)]
        if fakes:
            yield look_at(call)
        for one in (stands_for(program, given) for given in call.args if isinstance(given, ast.Name)):
            if isinstance(one, ast.Call) and program.called(one) == "detach" and _is_made(program, one):
                yield look_at(one, call)


def _is_made(program: Program, node: ast.expr) -> bool:
    """Tell whether a value is the output of a generator, through a detachment."""
    inner = stands_for(program, core(program, node))
    return isinstance(inner, ast.Call) and _MAKER.search(program.called(inner)) is not None


@suspects("fakes not cut off from their generator")
def _uncut(program: Program) -> Iterator[Spot]:
    """Find `D(fake)` in the loss of a discriminator with fakes that carry gradients."""
    if not _is_game(program):
        return
    for name, value, statement in named_values(program):
        if not _JUDGE_LOSS.search(name) or _MAKER_LOSS.search(name):
            continue
        for call in _judged(program, value):
            given = call.args[0]
            blocks = [one for one in program.outward(call) if isinstance(one, ast.With)]
            guarded = any("no_grad" in text(one.items[0]) for one in blocks)
            made = stands_for(program, given)
            cut = ".detach()" in text(given) + text(made) or ".data" in text(given)
            no_graph = isinstance(given, ast.Name) and "no_grad" in text_around(program, statement)
            mine = isinstance(made, ast.Call) and _MAKER.search(program.called(made))
            if mine and not guarded and not no_graph and not cut and not _cleared(program, call):
                yield look_at(call)


def _cleared(program: Program, judged: ast.Call) -> bool:
    """Tell whether gradients are cleared between the discriminator's pass and that of the generator."""
    passes = [one.lineno for one in program.calls_of(".backward") if one.lineno > judged.lineno]
    clears = [one.lineno for one in program.calls if re.search(r"zero_grad|reset_grad", program.called(one))]
    behind = [one for one in passes[:1] for line in clears if one <= line]
    return bool(behind) or len(passes) < 2


@suspects_rows("label of the other side", named_values)
def _labels(program: Program, name: str, value: ast.expr, _: ast.stmt) -> Iterator[Spot]:
    """Find a generator's loss with the label of fakes, and a discriminator's with labels exchanged."""
    maker = _MAKER_LOSS.search(name) and not _JUDGE_LOSS.search(name)
    if not maker and not _JUDGE_LOSS.search(name):
        return
    for call in within(value, ast.Call):
        if len(call.args) != 2 or isinstance(call.args[1], ast.Constant):
            continue
        if program.called(call) in program.functions or not _LABEL.fullmatch(word(program, call.args[1])):
            continue
        answer = text(call.args[0])
        label = re.sub(r"_like\([^)]*\)", "", f"{text(call.args[1])} {text(stands_for(program, call.args[1]))}")
        zero, one = re.search(r"zeros|fake|\b0\.?0?\b", label), re.search(r"ones|real|valid|true\b", label)
        if bool(zero) == bool(one) or not re.search(r"criterion|loss|bce|mse|adv", text(call.func), re.IGNORECASE):
            continue
        fake = _FAKE.search(answer) and not re.search(r"real", answer)
        real = re.search(r"real", answer) and not _FAKE.search(answer)
        if (maker and zero and fake) or (not maker and ((real and zero) or (fake and one))):
            yield look_at(call)


_BENT = re.compile(r"relu|log|exp|bce|criterion|loss_fn|softplus|crit\(", re.IGNORECASE)
"""What makes a term of a critic's loss more than a score."""


@suspects_rows("sign of the critic", named_values)
def _critic(program: Program, name: str, value: ast.expr, _: ast.stmt) -> Iterator[Spot]:
    """Find critic losses real - fake, hinge losses with exchanged signs, and a generator that lowers its score."""
    if _JUDGE_LOSS.search(name):
        yield from _hinges(program, value)
        terms = signed(program, value)
        sides = {side: {sign for sign, part in terms if _side(program, part) == side} for side in ("real", "fake")}
        bare_terms = not _BENT.search(text(value))
        if sides == {"real": {1}, "fake": {-1}} and bare_terms and not _score_falls(program, value):
            yield look_at(value)
    elif _MAKER_LOSS.search(name) and mentions_any(program, re.compile("critic|wass|wgan", re.IGNORECASE)):
        terms = signed(program, value)
        scored = len(terms) == 1 and terms[0][0] > 0 and value is not core(program, value)
        part = stands_for(program, core(program, terms[0][1]))
        raised = any(_JUDGE_LOSS.search(one) and _orientation(program, it) == 1 for one, it, _ in named_values(program))
        if scored and not raised and isinstance(part, ast.Call) and _JUDGE.search(program.called(part)):
            yield look_at(value)


def _orientation(program: Program, value: ast.expr) -> int:
    """Return the sign of the score of real examples in a loss of the critic; 0 if it is unknown."""
    found = {sign for sign, part in signed(program, value) if _side(program, part) == "real"}
    return found.pop() if len(found) == 1 else 0


def _score_falls(program: Program, value: ast.expr) -> bool:
    """Tell whether the generator lowers its score, or a factor scales a term: then the critic may do as it does."""
    if any(isinstance(part, ast.BinOp) for _, part in signed(program, value) if _side(program, part)):
        return True
    makers = [signed(program, it) for one, it, _ in named_values(program) if _MAKER_LOSS.search(one)]
    return any(len(it) == 1 and it[0][0] > 0 and _side(program, it[0][1]) == "fake" for it in makers)


def _side(program: Program, node: ast.expr) -> str:
    said = f"{text(node)} {text(stands_for(program, core(program, node)))}"
    fake, real = bool(_FAKE.search(said)), bool(re.search(r"real", said))
    return ("fake" if fake else "real") if fake != real and "penalty" not in said else ""


def _hinges(program: Program, value: ast.expr) -> Iterator[Spot]:
    for call in ast.walk(value):
        given = program.operand(call) if isinstance(call, ast.Call) and program.called(call) == "relu" else None
        if is_op(given, ast.Add | ast.Sub) and number(given.left) == 1:
            side = _side(program, given.right)
            if side == ("real" if isinstance(given.op, ast.Add) else "fake"):
                yield look_at(given)


@suspects_rows("critic with a bounded score", named_values)
def _bounded_critic(program: Program, _: str, value: ast.expr, __: ast.stmt) -> Iterator[Spot]:
    """Find a sigmoid or tanh at the end of a critic, whose mean scores of real and made examples are subtracted."""
    if _BENT.search(text(value)):
        return
    scores: dict[int, ast.Call] = {}
    for sign, part in signed(program, value):
        judged = stands_for(program, core(program, part))
        if isinstance(judged, ast.Call) and _JUDGE.search(program.called(judged)) and judged.args:
            scores[sign] = judged
    if len(scores) == 2 and len({text(one.func) for one in scores.values()}) == 1 and "mean" in text(value):
        made = end(program, scores[1])
        chosen = made is not None and any(isinstance(one, ast.If | ast.IfExp) for one in program.outward(made.node))
        if made is not None and made.op in {"sigmoid", "tanh"} and not chosen:
            yield look_at(made.node, value, op=made.op, loss=shown(value))


@suspects("penalty of the wrong norm")
def _penalty(program: Program) -> Iterator[Spot]:
    """Find a penalty on gradients with one norm for the batch, or one that is subtracted from the loss."""
    for call in program.calls:
        given = program.operand(call)
        if program.called(call) != "norm" or given is None or "grad" not in word(program, given):
            continue
        inside = text_around(program, call)
        source = text(stands_for(program, given))
        place = 1 if given is not (call.args[0] if call.args else None) else 2
        alone = argument(call, "dim", place) is None and "clip" not in inside and "autograd.grad" in inside
        if alone and "penalty" in inside and ".grad" not in text(given) and "norm(" not in source:
            yield look_at(call)
    for name, value, _ in named_values(program):
        for sign, part in signed(program, value) if _JUDGE_LOSS.search(name) else ():
            if sign < 0 and re.search(r"gradient_penalty|(^|\W)gp(\W|$)|grad_pen", text(part)):
                yield look_at(value)


@suspects("step of the other player")
def _other(program: Program) -> Iterator[Spot]:
    """Find `g_loss.backward()` before the step of the discriminator, and optimizers of the other model."""
    if not _is_game(program):
        return
    for call in program.calls_of(".backward"):
        statement = program.statement(call)
        body = list(getattr(program.parents.get(statement), "body", ()))
        behind = body[body.index(statement) + 1 :] if statement in body else []
        step = next((one for one in behind if ".step(" in text(one)), None)
        lost, stepped = text(program.operand(call)), text(step).partition(".step")[0] if step is not None else ""
        for mine, other in (
            (_MAKER_LOSS, r"(^|_|\.)d(_|$)|opt\w*_?d(_|$|isc)|disc"),
            (_JUDGE_LOSS, r"(^|_|\.)g(_|$)|opt\w*_?g(_|$|en)|gen"),
        ):
            if mine.search(lost) and step is not None and re.search(other, stepped, re.IGNORECASE):
                yield look_at(step, what=f"follows the backward pass of {lost}")
    for name, value, statement in named_values(program):
        calls = [one for one in within(value, ast.Call) if program.called(one) == "parameters"]
        owners = [text(program.operand(one)) for one in calls]
        if re.search(r"opt", name) and len(owners) == 1:
            owner = owners[0].rpartition(".")[2]
            for_maker = re.search(r"(^|_)(g|gen\w*)(_|$)|opt\w*G$", name)
            for_judge = re.search(r"(^|_)(d|disc\w*)(_|$)|opt\w*D$", name)
            if (for_maker and _JUDGE.search(owner)) or (for_judge and _MAKER.search(owner)):
                yield spot(statement, text=shown(value), what=f"gives {name} the other model")


@suspects_each("noise drawn once", ast.Call)
def _noise(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find a generator, a latent code or a noised input that gets the same noise in each training step."""
    loops = program.loops(call)
    if not loops or ".backward()" not in text(loops[0]) or not _MAKER.search(program.called(call)):
        return
    for given in call.args[:1]:
        bound = program.bound(given)
        drawn = bound is not None and program.called(bound.value or given) in {"randn", "rand", "normal"}
        known = drawn and bound is not None and not program.loops(bound.statement)
        shows = any(isinstance(one, ast.With) for one in program.outward(call))
        shows = shows or bool(re.search(r"no_grad|save|plot|fixed|eval", text(program.statement(call))))
        if known and not shows and program.scope(call) is program.scope(bound.statement if bound else call):
            yield look_at(call)


@suspects_each("cycle compared with the other domain", ast.Call)
def _cycle(program: Program, call: ast.Call) -> object:
    names = [word(program, one) for one in call.args[:2]]
    if len(names) != 2 or names[0][-1:].lower() == names[1][-1:].lower():
        return False
    cycle = re.search(r"^(rec|cyc|recov|recon)\w*_[ab]$", names[0], re.IGNORECASE)
    return cycle and re.search(r"^real_[ab]$", names[1], re.IGNORECASE)


# --- latent codes ---


@suspects_rows("latent code of the wrong noise", named_values)
def _code(program: Program, _: str, value: ast.expr, __: ast.stmt) -> Iterator[Spot]:
    """Find `mu + eps * logvar`, `mu * eps + std`, uniform noise, and one sample for the whole batch."""
    found = signed(program, value)
    if len(found) != 2:
        return
    for mean, noised in ((found[0][1], found[1][1]), (found[1][1], found[0][1])):
        parts = factors_of(noised)
        names = [word(program, one) for one in parts]
        if len(parts) != 2 or not _MEAN.search(word(program, mean)):
            continue
        plain = [one for one in parts if _LOGVAR.search(word(program, one)) and not isinstance(one, ast.Call)]
        uniform = [one for one in parts if re.match(r"rand(_like)?$", program.called(stands_for(program, one)))]
        variance = [one for one in parts if re.search(r"^var(iance)?$", word(program, one))]
        noisy = any(map(_NOISE.search, names)) or any("rand" in text(stands_for(program, one)) for one in parts)
        if noisy and (plain or uniform or variance):
            wrong = (plain or variance or uniform)[0]
            at = stands_for(program, wrong) if uniform and wrong is uniform[0] else value
            what = "uniform noise has no negative numbers" if uniform else "the factor of the noise is a deviation"
            yield look_at(at, what=what)


@suspects_each("divergence of another formula", ast.BinOp)
def _divergence(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find a divergence whose terms 1 + logvar - mu**2 - exp(logvar) have other signs or powers."""
    if isinstance(program.parents.get(node), ast.BinOp) or not re.search(r"exp|log", text(node)):
        return
    terms = signed(program, node)
    if len(terms) not in {3, 4}:
        return
    kinds = {_kind(program, part): sign for sign, part in terms}
    if {"log", "exp"} <= set(kinds) and ({"square", "mean"} & set(kinds)):
        base = kinds["log"]
        wrong = kinds["exp"] == base or kinds.get("square", -base) == base or kinds.get("one", base) != base
        if wrong or "mean" in kinds:
            yield look_at(node)


def _kind(program: Program, node: ast.expr) -> str:
    """Return which term of the divergence an expression is."""
    if number(node) == 1:
        return "one"
    said = text(node)
    named = words_in(node)
    if program.called(node) == "exp":
        return "exp" if any(map(_LOGVAR.search, named)) else ""
    squared = re.search(r"\*\* ?2|pow\(|square", said)
    if squared and any(map(_MEAN.search, named)):
        return "square"
    if any(map(_LOGVAR.search, named)):
        return "log"
    return "mean" if _MEAN.search(word(program, node)) and not squared else ""


@suspects("one layer for mean and deviation")
def _heads(program: Program) -> Iterator[Spot]:
    """Find `mu = self.fc(h)` and `logvar = self.fc(h)`, and an activation that bounds them."""
    values = [(name, value, place) for name, value, place in named_values(program) if isinstance(value, ast.Call)]
    means = {text(value): place for name, value, place in values if _MEAN.search(name) and value.args}
    for name, value, place in values:
        spread = (_LOGVAR.search(name) or _STD.search(name)) and not program.names.full(value.func)
        if spread and text(value) in means and program.function(place) is program.function(means[text(value)]):
            yield spot(place, text=shown(value), what="is mean and deviation at once")
        outer = program.called(value)
        positive = outer == "relu" and re.match(r"mu$|mean$|z_mean", name)
        positive = positive or (outer in {"relu", "sigmoid"} and _LOGVAR.search(name))
        if positive and mentions_any(program, re.compile("reparam|kl|latent", re.IGNORECASE)):
            yield spot(place, text=shown(value), what="has no negative numbers")
        elif _LOG_STD.search(name) and _is_rectified(program, value):
            yield spot(place, text=shown(value), what="has no negative numbers, so the deviation never falls below 1")


def _is_rectified(program: Program, value: ast.expr) -> bool:
    """Tell whether a value comes out of a rectifier, perhaps cut from above: by a function, a method or a layer."""
    while isinstance(value, ast.Call) and program.called(value) in {"clamp", "clip", "squeeze", "clamp_max"}:
        inner = program.operand(value)
        if inner is None:
            return False
        value = stands_for(program, inner)
    made = end(program, value)
    return made is not None and made.op in {"relu", "softplus"}


@suspects("straight-through estimate")
def _straight(program: Program) -> Iterator[Spot]:
    """Find `q + (z - q).detach()`, and codebook losses that detach the same side twice or none."""
    code = re.compile(r"^(z_?q\w*|quant\w*|q|codes?|embed\w*|e)$")
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Add) and isinstance(node.right, ast.Call):
            inner = program.operand(node.right) if program.called(node.right) == "detach" else None
            known = code.search(word(program, node.left)) and mentions_any(program, _CODES)
            turned = is_op(inner, ast.Sub)
            turned = turned and isinstance(inner, ast.BinOp) and text(inner.right) == text(node.left)
            if turned and known:
                yield look_at(node, what="passes the gradient to the code and not to the encoder")
    pairs = [one for one in losses(program) if one.kind == "mse_loss" and one.target is not None]
    if not mentions_any(program, re.compile("codebook|commit|vector_?quanti|vq", re.IGNORECASE)):
        return
    cut = [
        (
            one,
            {word(program, side) for side in (one.input, one.target) if side is not None and "detach" in text(side)},
            {word(program, one.input), word(program, one.target)},
        )
        for one in pairs
    ]
    for at, (one, sides, both) in enumerate(cut):
        same = [other for other, mine, names in cut[:at] if mine == sides and names == both and len(sides) == 1]
        if same:
            what = "detaches the same side as the other loss, so one of code and encoder is never trained"
            yield look_at(one.call, what=what)


@suspects_each("farthest instead of nearest", ast.Call)
def _farthest(program: Program, call: ast.Call) -> object:
    """Find argmax of distances, argmin of similarities, and topk of distances that keeps the largest."""
    name, given = program.called(call), program.operand(call)
    if given is None or isinstance(given, ast.List | ast.Tuple):
        return False
    said = word(program, given)
    far = re.search(r"(^|_)(dists?|distances?|dist_\w+|d2)(_|$)", said, re.IGNORECASE)
    near = re.search(r"(^|_)(sims?|similarit\w+|cos|cosine\w*)(_|$)", said, re.IGNORECASE)
    largest = argument(call, "largest", 2)
    hard = re.search(r"hard|pos|far|margin", text(program.statement(call)))
    return (
        (far and name == "argmax" and not hard)
        or (near and name == "argmin" and not re.search(r"neg|cost", text(program.statement(call))))
        or (far and name == "topk" and largest is None and not hard)
    )


_LATENT = re.compile(r"(^|_)(mu|mean|log_?var|log_?std|log_?sigma|logits_z)$", re.IGNORECASE)


@suspects_each("mean or variance of a code behind an activation", ast.Call)
def _bounded_code(program: Program, call: ast.Call) -> object:
    """Find `F.relu(self.to_mu(h))` and `mu = relu(...)`."""
    kind = program.called(call)
    if kind not in {"relu", "sigmoid", "softplus", "leaky_relu", "elu", "gelu", "silu"}:
        return False
    inner = program.operand(call)
    layer = program.called(inner) if isinstance(inner, ast.Call) and not _is_method(inner) else ""
    outer = program.parents.get(call)
    name = target_text(outer)
    narrow = kind in {"sigmoid", "softplus"} and not re.search("log|mu|mean", f"{layer}{name}")
    return (_LATENT.search(layer) or _LATENT.search(name)) and not narrow


def _is_method(call: ast.Call) -> bool:
    """Tell whether a call is `z.mean(...)`, and no layer of `self`."""
    function = call.func
    return isinstance(function, ast.Attribute) and not ast.unparse(function.value).startswith("self")


_CENTRED = re.compile(r"\* 2(\.0)? - 1|/ 127\.5\)? - 1|Normalize\(\(?\[?0\.5|- 0\.5\) / 0\.5|-1\.?0?, 1\.?0?\)")


@suspects("generator with another range than the data")
def _range(program: Program) -> Iterator[Spot]:
    """Find a generator that ends in a sigmoid beside data scaled to -1 .. 1, or in tanh beside standardised data."""
    scaled = _CENTRED.search(text(program.tree))
    for owner in program.modules() if scaled else ():
        calls = within(owner.node, ast.Call)
        ends = [one for one in calls if program.called(one).lower() == "sigmoid"]
        if _MAKER.search(owner.node.name) and ends:
            told = f"{shown(ends[-1])} ends the generator in 0 .. 1, and the data are scaled to -1 .. 1: half of them"
            yield spot(max(ends, key=lambda one: one.lineno), what=told)
    made = [(name, layer(program, value)) for name, value, _ in named_values(program) if isinstance(value, ast.Call)]
    makers = [one for name, one in made if one is not None and (_MAKER.search(name) or _MAKER.search(one.name))]
    lasts = [last for one in makers if (last := end_of_layer(program, one)) is not None and last.op == "tanh"]
    for node, deviation in _standardised(program) if lasts else ():
        told = f"{shown(node)} leaves numbers beyond -1 .. 1, where the tanh of the generator ends: some of the data"
        yield spot(deviation or node, node, lasts[0].node, what=told)


def _standardised(program: Program) -> Iterator[tuple[ast.expr, ast.stmt | None]]:
    """Yield what divides data by their own deviation, with the line that measures it, and `Normalize` to beyond 1."""
    for call in program.calls:
        given = [[it.value for it in within(one, ast.Constant)] for one in call.args[:2]]
        pairs = zip(*given, strict=False) if program.called(call) == "Normalize" and len(given) == 2 else ()
        known = [(m, s) for m, s in pairs if isinstance(m, float) and isinstance(s, float) and s > 0]
        if any(max(m, 1 - m) > 1.2 * s for m, s in known):
            yield call, None
    for node in program.every(ast.BinOp):
        owner = program.owner(node)
        if not is_op(node, ast.Div) or not is_op(node.left, ast.Sub) or (owner is not None and owner.is_module):
            continue
        sides = [program.called(stands_for(program, one)) for one in (node.left.right, node.right)]
        if sides == ["mean", "std"] and not re.search(r"clamp|clip|tanh", text(program.statement(node))):
            bound = program.bound(node.right)
            held = bound.statement if bound is not None else None
            yield node, held if isinstance(held, ast.stmt) else None
