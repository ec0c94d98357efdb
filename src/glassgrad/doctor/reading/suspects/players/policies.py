"""Suspects about policies and their updates: distributions, ratios, advantages, entropies, and what a loss keeps."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.iterations import is_optimizer
from glassgrad.doctor.reading.nodes import factors_of, ident, is_op, object_of, reads_in, within
from glassgrad.doctor.reading.program import Program, argument
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import (
    assigned,
    calls_of,
    mentions_any,
    named_values,
    source,
    stem_of,
    text,
    text_around,
    words_in,
)
from glassgrad.doctor.reading.suspects.players.algebra import GAMMA, REWARD, core, signed, stands_for, word
from glassgrad.doctor.reading.values import end, losses

_OLD = re.compile(r"(^|_)(old|prev|behaviou?r|mu)(_|$)|^old", re.IGNORECASE)
_LIKELY = re.compile(r"log_?p|logp|log_?prob|log_?pi", re.IGNORECASE)
_RATIO = re.compile(r"(^|_)(ratios?|rt|importance\w*)(_|\d|$)", re.IGNORECASE)
_Q = re.compile(r"(^|_)(q\w*|critic\w*|min_?q\w*|qf\w*)$", re.IGNORECASE)
_VALUE = re.compile(r"(^|_)(values?|vs?|v_\w+|baselines?|critic\w*|state_values?|vals?)(_|\d|$)", re.IGNORECASE)
_RETURN = re.compile(r"(^|_)(returns?|rets?|targets?|rewards?|rews?|G|R|td_targets?|rtg|r)(_|\d|$)")
_DECAY = re.compile(r"la?m|tau|decay|trace", re.IGNORECASE)


@suspects_each("numbers of another kind given to a distribution", ast.Call)
def _distribution(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `Categorical(logits)`, `Categorical(logits=probs)` and `Normal(mu, log_std)`."""
    name = program.called(call)
    if name in {"Categorical", "Bernoulli", "OneHotCategorical"}:
        probs, logits = argument(call, "probs", 0), argument(call, "logits")
        for given, pattern, ops in (
            (probs, r"logit|score", {"linear"}),
            (logits, r"prob|softmax", {"softmax", "sigmoid"}),
        ):
            made = end(program, given) if given is not None else None
            said = word(program, given)
            if given is not None and (
                (re.search(pattern, said, re.IGNORECASE) and "log_prob" not in said)
                or (made is not None and made.op in ops)
            ):
                yield look_at(call)
    elif name == "Normal":
        scale = argument(call, "scale", 1)
        raw = scale is not None and not isinstance(stands_for(program, scale), ast.Call)
        if raw and re.search(r"log|(^|_)var(iance)?(_|$)|sigma2", word(program, scale)):
            yield look_at(call)


@suspects_each("probability of an action just drawn", calls_of(".log_prob"))
def _fresh(program: Program, call: ast.Call) -> object:
    """Find `dist.log_prob(dist.sample())` where the ratio to the old policy is computed."""
    given = call.args[0] if call.args else None
    value = stands_for(program, given) if given is not None else None
    loops = program.loops(call)
    place = text(loops[0]) if loops else text_around(program, call)
    updates = re.search(r"ratio|surr|old_", place) and "backward" in place and ".step(" in place
    acts = re.search(r"env\w*\.step\(", place)
    fresh = value is not None and program.called(value) in {"sample", "rsample"}
    if fresh and updates and not acts:
        return spot(call, text=shown(call), why="the ratio compares it with the probability of another action")
    if fresh and isinstance(value, ast.Call) and _is_second(program, call, value):
        return spot(call, text=shown(call), why="another draw of the same distribution is the action that is taken")
    return False


def _is_second(program: Program, call: ast.Call, drawn: ast.Call) -> bool:
    """Tell whether `log_prob` judges a draw that nothing else uses, beside another draw of the same distribution."""
    around = program.around(call)
    if text(object_of(call)) != text(object_of(drawn)):
        return False
    name = ident(call.args[0]) if call.args[0] is not drawn else ""
    if name and sum(one.id == name for one in within(around, ast.Name)) > 2:
        return False
    others = [one for one, value, _ in assigned(around) if value is not drawn and text(value) == text(drawn)]
    return bool(reads_in(around) & {ident(one) for one in others})


@suspects_rows("ratio of two policies", named_values)
def _ratio(program: Program, name: str, value: ast.expr, _: ast.stmt) -> object:
    if not _RATIO.search(name) or re.search(r"log|clip|loss", name):
        return False
    inner = program.operand(value) if isinstance(value, ast.Call) and program.called(value) == "exp" else None
    difference = core(program, inner) if inner is not None else value
    difference = stands_for(program, difference)
    if not is_op(difference, ast.Sub | ast.Div):
        return False
    left, right = word(program, difference.left), word(program, difference.right)
    logs = _LIKELY.search(left) and _LIKELY.search(right)
    turned = _OLD.search(left) and not _OLD.search(right)
    wrong = turned or (logs and (inner is None or isinstance(difference.op, ast.Div)))
    return logs and wrong and look_at(value)


@suspects_each("clipping of the ratio", ast.Call)
def _clipped(program: Program, call: ast.Call) -> Iterator[Spot]:
    """Find `clamp(ratio, -eps, eps)`, and the larger of the clipped and the plain surrogate."""
    name, given = program.called(call), program.operand(call)
    if name in {"clamp", "clip"} and given is not None and re.search(r"^ratios?$|^rt$", word(program, given)):
        place = 0 if given is not (call.args[0] if call.args else None) else 1
        low = argument(call, "min", place) or argument(call, "low", place)
        if low is not None and re.match(r"-|0(\.0)?$", text(low)):
            yield look_at(call, what="the ratio is about 1, and these bounds are about 0")
    elif name in {"min", "max", "minimum", "maximum"} and len(call.args) == 2:
        values = [stands_for(program, one) for one in call.args]
        said = [f"{text(one)} {text(side)}" for one, side in zip(values, call.args, strict=True)]
        if all(re.search(r"surr|(\b|_)ratio|pg_?loss|policy_loss", one) for one in said):
            signs = {one for value in values for one, _ in signed(program, value)[:1]}
            if signs == ({1} if name.startswith("max") else {-1}):
                yield look_at(call, what="the objective is the smaller gain, and so the larger loss")


@suspects_rows("old policy taken from the new one", named_values)
def _old(program: Program, name: str, value: ast.expr, statement: ast.stmt) -> object:
    """Find old log-probabilities computed in the innermost loop with the backward pass: the ratio is always 1."""
    loops = program.loops(statement)
    old = _OLD.search(name) and _LIKELY.search(name)
    if not loops or not old or isinstance(core(program, value), ast.Subscript):
        return False
    names = [program.called(one) for one in within(value, ast.Call)]
    computed = any(re.search(r"log_prob|evaluate|get_action|get_log|^detach$|clone", one) for one in names)
    subscript = any(isinstance(one, ast.Subscript) for one in ast.walk(value))
    updates = ".backward()" in text(loops[0]) and not re.search(r"env\w*\.step\(", text(loops[0]))
    return computed and not subscript and updates and "ratio" in text_around(program, statement) and look_at(statement)


@suspects_rows("advantage turned round", named_values)
def _advantage(program: Program, name: str, value: ast.expr, _: ast.stmt) -> Iterator[Spot]:
    if not re.search(r"(^|_)(adv|advs|advantages?)(_|$)", name):
        return
    found = signed(program, value)
    if len(found) == 2 and found[0][0] != found[1][0]:
        plus, minus = (word(program, part) for _, part in sorted(found, key=lambda one: -one[0]))
        if _VALUE.search(plus) and _RETURN.search(minus) and not _VALUE.search(minus) and not _RETURN.search(plus):
            yield look_at(value)


@suspects_rows("discounted sum over the past", named_values)
def _past(program: Program, name: str, value: ast.expr, statement: ast.stmt) -> Iterator[Spot]:
    """Find `total = r[t] + gamma * total` in a loop over rising indices, and recursions of GAE that lack a factor."""
    loops = program.loops(statement)
    products = [one for one in ast.walk(value) if is_op(one, ast.Mult)]
    back = [one for one in products if name in [word(program, part) for part in factors_of(one)]]
    back = [one for one in back if any(GAMMA.search(part) or _DECAY.search(part) for part in words_in(one))]
    if not back or not loops or not isinstance(loops[0], ast.For) or not isinstance(value, ast.BinOp):
        return
    counted = text(loops[0].iter)
    rising = re.match(r"(range|enumerate|zip|tqdm)\(", counted) and not re.search(r"revers|-1|flip|reversed", counted)
    turned = re.search(r"reversed|\[::-1\]|flip|T - 1 - |n - 1 - |-t\b|- t - ", text_around(program, statement))
    wide = max(back, key=lambda one: len(factors_of(one)))
    said = " ".join(words_in(wide))
    smooth = re.search(r"gae|adv", name)
    lacks = smooth and (not GAMMA.search(said) or not _DECAY.search(said))
    total = re.search(r"gae|adv|ret|^G$|^R$|total|run|cum|disc|rtg|acc|sum", name)
    if rising and not turned and total and any(map(REWARD.search, words_in(value))):
        yield look_at(statement, what="each sum holds the steps before it")
    elif lacks and not re.search(r"gamma_?lam|discount\w*lam", said, re.IGNORECASE):
        yield look_at(statement, what="the sum falls by gamma times lambda in each step")


@suspects_rows("sign of the entropy", named_values)
def _entropy(program: Program, name: str, value: ast.expr, _: ast.stmt) -> object:
    """Find a value and `alpha * log_prob` with one sign: a target is q - alpha * log_prob, a loss its negative."""
    scale = re.compile(r"alpha|ent_?coe?f?|temp|entropy", re.IGNORECASE)
    terms = signed(program, value)
    likely = [one for one, part in terms for it in [factors_of(part)] if len(it) > 1 and _is_likely(program, it, scale)]
    least = {"min", "minimum"}
    valued = [one for one, part in terms if _Q.search(word(program, part)) or program.called(part) in least]
    lowered = bool(re.search(r"loss|objective", name))
    if len(likely) != 1 or len(valued) != 1 or len(terms) > 3:
        return False
    return (likely[0] == valued[0] or (lowered and valued[0] > 0 and "critic" not in name)) and look_at(value)


def _is_likely(program: Program, parts: list[ast.expr], scale: re.Pattern[str]) -> bool:
    names = [word(program, one) for one in parts]
    return any(map(_LIKELY.search, names)) and any(scale.search(one) for one in names if not _LIKELY.search(one))


@suspects_rows("target of the entropy", named_values)
def _entropy_target(program: Program, name: str, value: ast.expr, _: ast.stmt) -> Iterator[Spot]:
    if re.search(r"target_?ent", name, re.IGNORECASE):
        sizes = re.search(r"act|shape|prod|dim", text(value)) and "log" not in text(value)
        if sizes and not re.search(r"(^|[(\s*])-", text(value)):
            yield look_at(value)
    elif re.search(r"alpha_?loss|loss_?alpha|ent_?coef_?loss", name):
        for one in within(value, ast.BinOp):
            if is_op(one, ast.Sub):
                sides = word(program, one.left), word(program, one.right)
                if _LIKELY.search(sides[0]) and re.search(r"target_?ent", sides[1]):
                    yield look_at(value)


@suspects("squashed action without its correction")
def _squashed(program: Program) -> Iterator[Spot]:
    """Find tanh of a sample whose log_prob has no term of the derivative of tanh, or one with the wrong sign."""
    for call in program.calls:
        given = program.operand(call)
        if program.called(call) != "tanh" or given is None:
            continue
        drawn = program.called(stands_for(program, core(program, given))) in {"rsample", "sample"}
        inside = text_around(program, call)
        corrected = re.search(r"1(\.0*)? -|softplus|TanhTransform|log\(2|log1p|jacob|correct|squash", inside)
        if drawn and ".log_prob(" in inside and not corrected:
            yield look_at(call, what="the density of a squashed action is divided by 1 - tanh(x)**2")
    for node in program.every(ast.AugAssign):
        added = isinstance(node.op, ast.Add) and _LIKELY.search(text(node.target))
        if added and re.search(r"log\(.*1(\.0*)? - .*(\*\* 2|pow|square)", text(node.value)):
            yield look_at(node, what="the logarithm of 1 - tanh(x)**2 is subtracted from that of the density")


@suspects_each("larger of two critics", ast.Call)
def _larger(program: Program, call: ast.Call) -> object:
    if program.called(call) not in {"max", "maximum"} or len(call.args) != 2:
        return False
    names = [word(program, one) for one in call.args]
    pair = all(re.search(r"(^|_)(q|critic|v|value)s?_?[12ab](_\w*)?$", one, re.IGNORECASE) for one in names)
    return pair and names[0] != names[1] and "loss" not in text(call)


@suspects("critic fitted to something else")
def _fitted(program: Program) -> Iterator[Spot]:
    """Find a loss between values and advantages, or between values and single rewards."""
    if not mentions_any(program, GAMMA):
        return
    discounted = mentions_any(program, re.compile(r"(^|_)(returns?|rets|rtg|Gs?)(_|$)"))
    for one in losses(program):
        if one.kind not in {"mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"} or one.target is None:
            continue
        names = [word(program, one.input), word(program, one.target)]
        for value, other in (names, names[::-1]):
            gain = re.search(r"(^|_)adv|advantage|gae", other)
            if _VALUE.search(value) and (gain or (discounted and re.search(r"^(b_|batch_)?rewards?(_\w+)?$", other))):
                yield look_at(one.call, name=other)
                break


@suspects("reward of one step weighs an action")
def _rewarded(program: Program) -> Iterator[Spot]:
    """Find `-log_prob * reward` in a script that has a discount."""
    if not mentions_any(program, GAMMA):
        return
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Mult):
            names = [word(program, one) for one in factors_of(node)]
            likely = any(_LIKELY.search(one) for one in names)
            gains = any(re.search(r"^(b_|batch_)?(r|rews?|rewards?)(_batch|_t|_b)?$", one) for one in names)
            if likely and gains and len(names) == 2 and not _replaced(program, node):
                yield look_at(node)


def _replaced(program: Program, node: ast.BinOp) -> bool:
    """Tell whether the rewards are sums already, by what is assigned to them or looped over."""
    for one in factors_of(node):
        inner = core(program, one)
        for bound in program.bindings(program.scope(inner), inner.id) if isinstance(inner, ast.Name) else ():
            if re.search(r"return|discount|gamma|cum|\bR\b|zip", text(bound.statement)):
                return True
    return bool(re.search(r"discount\w*\(|for \w*,? ?\w* in zip\([^)]*(return|discount|R)", text_around(program, node)))


@suspects_each("records of earlier episodes", calls_of(".append"))
def _records(program: Program, call: ast.Call) -> object:
    """Find lists of log-probabilities or rewards that grow in a loop with a backward pass and are never emptied."""
    whole = text_around(program, program.tree)
    receiver = program.operand(call)
    name = text(receiver)
    kept = r"^(\w+\.)*(saved_|episode_)?(log_probs?|logprobs?|saved_actions?|rewards|entropies|values)$"
    if not re.search(kept, name):
        return False
    last = name.rpartition(".")[2]
    emptied = (
        rf"del [^\n]*\b{last}\b|\b{last}\.clear\(|\b{last}\[:\] =|\.(clear|reset|clean|empty|init)\w*\("
        rf"|\b{last} = |\b{last}, .* = |\b{last}: "
    )
    emptied_at = [one.start() for one in re.finditer(emptied, whole)]
    sets = [one for one in program.nodes if isinstance(one, ast.Assign | ast.AnnAssign)]
    made = [one for one in sets if last in _targets(program, one)]
    begun = len(made) == 1 and not program.loops(made[0])
    outside = begun and getattr(program.function(made[0]), "name", "__init__") == "__init__"
    odd = outside and len(emptied_at) <= 1 and program.loops(call) and ".backward()" in whole
    return odd and look_at(call, name=name)


def _targets(program: Program, node: ast.Assign | ast.AnnAssign) -> list[str]:
    """Return the words of what a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [word(program, it) for one in targets for it in (one.elts if isinstance(one, ast.Tuple) else [one])]


@suspects_each("averaged before it is weighted", operations(ast.Mult))
def _averaged(program: Program, node: ast.BinOp) -> object:
    """Find `log_probs.mean() * returns`."""
    parts = factors_of(node)
    parts = [one.operand if isinstance(one, ast.UnaryOp) else one for one in parts]
    means = [one for one in parts if program.called(one) == "mean" and _LIKELY.search(word(program, one))]
    gains = [one for one in parts if re.search(r"adv|return|reward|gain|delta|^[GR]$", word(program, one))]
    return means and gains


@suspects_each("gradient lost in a number", calls_of(".append"))
def _numbers(program: Program, call: ast.Call) -> object:
    """Find `values.append(value.item())` where a loss needs the gradient of the values."""
    given = call.args[0] if call.args else None
    cut = program.called(given) in {"item", "detach", "float", "numpy"}
    receiver = word(program, program.operand(call))
    mine = re.search(r"^(saved_)?(log_probs?|logprobs?|(state_)?values?|entrop\w+|critic_values)$", receiver)
    own_pass = len(re.findall(r"\.log_prob\(", source(program))) == 1 and "ratio" not in source(program)
    return cut and mine and own_pass and "backward" in source(program) and "evaluate" not in source(program)


@suspects("gradients of one player kept")
def _uncleared(program: Program) -> Iterator[Spot]:
    """Find one of several optimizers that steps and never clears its gradients."""
    if re.search(r"\.grad = ", source(program)):
        return  # what it sets needs no clearing
    made = [(call, call.func.value) for call in program.calls_of(".step") if isinstance(call.func, ast.Attribute)]
    steps = {text(one): call for call, one in made if is_optimizer(program, one)}
    clears = {text(program.operand(call)) for call in program.calls_of(".zero_grad")}
    known = all(is_optimizer(program, program.operand(call) or call) for call in program.calls_of(".zero_grad"))
    missing = [call for name, call in steps.items() if name not in clears]
    if len(steps) > 1 and clears and known and len(missing) == 1 and clears <= set(steps):
        yield look_at(missing[0])


_QUICK = 0.99
"""The largest factor per step that ends the exploration after a few episodes."""


@suspects_each("exploration over after a few episodes", ast.Assign | ast.AugAssign)
def _explored(program: Program, node: ast.Assign | ast.AugAssign) -> object:
    """Find `epsilon *= 0.98` in the loop over the steps of an episode."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    loops = program.loops(node)
    explores = re.search("eps|explor", stem_of(target))
    if len(loops) < 2 or not explores:
        return False
    factor = _factor_of(program, node, text(target))
    acts = [one for one in program.calls_of(".step") if one.args and loops[0] in program.loops(one)]
    inside = set(ast.walk(loops[0]))
    tests = [text(one.test) for one in program.outward(node) if isinstance(one, ast.If) and one in inside]
    plain = all(re.search(r"eps|explor|len\(|mem|buffer|replay", one) for one in tests)
    if factor is None or not 0 < factor <= _QUICK or not acts or not plain:
        return False
    return look_at(node, steps=f"{math.log(0.1) / math.log(factor):.0f}")


def _factor_of(program: Program, node: ast.Assign | ast.AugAssign, name: str) -> float | None:
    """Return the number by which a statement multiplies a variable."""
    if isinstance(node, ast.AugAssign):
        return setting(program, node.value) if isinstance(node.op, ast.Mult) else None
    for one in within(node.value, ast.BinOp):
        if is_op(one, ast.Mult) and name in {text(one.left), text(one.right)}:
            return setting(program, one.right if text(one.left) == name else one.left)
    return None
