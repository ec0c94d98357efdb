"""Suspects about policies and their updates: distributions, ratios, advantages, entropies, and what a loss keeps."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.iterations import is_optimizer
from glassgrad.doctor.reading.program import Program, argument
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import suspects, suspects_of
from glassgrad.doctor.reading.suspects.players.algebra import (
    GAMMA,
    REWARD,
    around,
    bare,
    factors,
    held,
    mentions_any,
    named_values,
    signed,
    word,
    words_in,
)
from glassgrad.doctor.reading.suspects.spelling import called, ident, operand, source, text
from glassgrad.doctor.reading.values import end, losses

_OLD = re.compile(r"(^|_)(old|prev|behaviou?r|mu)(_|$)|^old", re.IGNORECASE)
_LIKELY = re.compile(r"log_?p|logp|log_?prob|log_?pi", re.IGNORECASE)
_RATIO = re.compile(r"(^|_)(ratios?|rt|importance\w*)(_|\d|$)", re.IGNORECASE)
_Q = re.compile(r"(^|_)(q\w*|critic\w*|min_?q\w*|qf\w*)$", re.IGNORECASE)
_VALUE = re.compile(r"(^|_)(values?|vs?|v_\w+|baselines?|critic\w*|state_values?|vals?)(_|\d|$)", re.IGNORECASE)
_RETURN = re.compile(r"(^|_)(returns?|rets?|targets?|rewards?|rews?|G|R|td_targets?|rtg|r)(_|\d|$)")
_DECAY = re.compile(r"la?m|tau|decay|trace", re.IGNORECASE)


@suspects("numbers of another kind given to a distribution")
def _distribution(program: Program) -> Iterator[Spot]:
    """Find `Categorical(logits)`, `Categorical(logits=probs)` and `Normal(mu, log_std)`."""
    for call in program.calls:
        name = called(program, call)
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
                    yield spot(call, text=shown(call))
        elif name == "Normal":
            scale = argument(call, "scale", 1)
            if (
                scale is not None
                and re.search(r"log|(^|_)var(iance)?(_|$)|sigma2", word(program, scale))
                and not isinstance(held(program, scale), ast.Call)
            ):
                yield spot(call, text=shown(call))


@suspects("probability of an action just drawn")
def _fresh(program: Program) -> Iterator[Spot]:
    """Find `dist.log_prob(dist.sample())` where the ratio to the old policy is computed."""
    for call in program.calls_of(".log_prob"):
        given = call.args[0] if call.args else None
        value = held(program, given) if given is not None else None
        loops = program.loops(call)
        place = text(loops[0]) if loops else around(program, call)
        updates = re.search(r"ratio|surr|old_", place) and "backward" in place and ".step(" in place
        acts = re.search(r"env\w*\.step\(", place)
        if value is not None and called(program, value) in {"sample", "rsample"} and updates and not acts:
            yield spot(call, text=shown(call))


@suspects("ratio of two policies")
def _ratio(program: Program) -> Iterator[Spot]:
    for name, value, _ in named_values(program):
        if not _RATIO.search(name) or re.search(r"log|clip|loss", name):
            continue
        inner = operand(program, value) if isinstance(value, ast.Call) and called(program, value) == "exp" else None
        difference = bare(program, inner) if inner is not None else value
        difference = held(program, difference)
        if not isinstance(difference, ast.BinOp) or not isinstance(difference.op, ast.Sub | ast.Div):
            continue
        left, right = word(program, difference.left), word(program, difference.right)
        logs = _LIKELY.search(left) and _LIKELY.search(right)
        turned = _OLD.search(left) and not _OLD.search(right)
        wrong = turned or (logs and (inner is None or isinstance(difference.op, ast.Div)))
        if logs and wrong:
            yield spot(value, text=shown(value))


@suspects("clipping of the ratio")
def _clipped(program: Program) -> Iterator[Spot]:
    """Find `clamp(ratio, -eps, eps)`, and the larger of the clipped and the plain surrogate."""
    for call in program.calls:
        name, given = called(program, call), operand(program, call)
        if name in {"clamp", "clip"} and given is not None and re.search(r"^ratios?$|^rt$", word(program, given)):
            place = 0 if given is not (call.args[0] if call.args else None) else 1
            low = argument(call, "min", place) or argument(call, "low", place)
            if low is not None and re.match(r"-|0(\.0)?$", text(low)):
                yield spot(call, text=shown(call), what="the ratio is about 1, and these bounds are about 0")
        elif name in {"min", "max", "minimum", "maximum"} and len(call.args) == 2:
            values = [held(program, one) for one in call.args]
            if all(
                re.search(r"surr|(\b|_)ratio|pg_?loss|policy_loss", f"{text(one)} {text(given)}")
                for one, given in zip(values, call.args, strict=True)
            ):
                signs = {one for value in values for one, _ in signed(program, value)[:1]}
                if signs == ({1} if name.startswith("max") else {-1}):
                    yield spot(call, text=shown(call), what="the objective is the smaller gain, and so the larger loss")


@suspects("old policy taken from the new one")
def _old(program: Program) -> Iterator[Spot]:
    """Find old log-probabilities computed in the innermost loop with the backward pass: the ratio is always 1."""
    for name, value, statement in named_values(program):
        loops = program.loops(statement)
        if (
            not loops
            or not _OLD.search(name)
            or not _LIKELY.search(name)
            or isinstance(bare(program, value), ast.Subscript)
        ):
            continue
        computed = any(
            re.search(r"log_prob|evaluate|get_action|get_log|^detach$|clone", called(program, one))
            for one in ast.walk(value)
            if isinstance(one, ast.Call)
        )
        subscript = any(isinstance(one, ast.Subscript) for one in ast.walk(value))
        updates = ".backward()" in text(loops[0]) and not re.search(r"env\w*\.step\(", text(loops[0]))
        if computed and not subscript and updates and "ratio" in around(program, statement):
            yield spot(statement, text=shown(statement))


@suspects("advantage turned round")
def _advantage(program: Program) -> Iterator[Spot]:
    for name, value, _ in named_values(program):
        if not re.search(r"(^|_)(adv|advs|advantages?)(_|$)", name):
            continue
        found = signed(program, value)
        if len(found) == 2 and found[0][0] != found[1][0]:
            plus, minus = (word(program, part) for _, part in sorted(found, key=lambda one: -one[0]))
            if _VALUE.search(plus) and _RETURN.search(minus) and not _VALUE.search(minus) and not _RETURN.search(plus):
                yield spot(value, text=shown(value))


@suspects("discounted sum over the past")
def _past(program: Program) -> Iterator[Spot]:
    """Find `total = r[t] + gamma * total` in a loop over rising indices, and recursions of GAE that lack a factor."""
    for name, value, statement in named_values(program):
        loops = program.loops(statement)
        products = [one for one in ast.walk(value) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
        back = [
            one
            for one in products
            if name in [word(program, part) for part in factors(one)]
            and any(GAMMA.search(part) or _DECAY.search(part) for part in words_in(one))
        ]
        if not back or not loops or not isinstance(loops[0], ast.For) or not isinstance(value, ast.BinOp):
            continue
        counted = text(loops[0].iter)
        rising = re.match(r"(range|enumerate|zip|tqdm)\(", counted) and not re.search(
            r"revers|-1|flip|reversed", counted
        )
        turned = re.search(r"reversed|\[::-1\]|flip|T - 1 - |n - 1 - |-t\b|- t - ", around(program, statement))
        wide = max(back, key=lambda one: len(factors(one)))
        said = " ".join(words_in(wide))
        smooth = re.search(r"gae|adv", name)
        lacks = smooth and (not GAMMA.search(said) or not _DECAY.search(said))
        total = re.search(r"gae|adv|ret|^G$|^R$|total|run|cum|disc|rtg|acc|sum", name)
        if rising and not turned and total and any(map(REWARD.search, words_in(value))):
            yield spot(statement, text=shown(statement), what="each sum holds the steps before it")
        elif lacks and not re.search(r"gamma_?lam|discount\w*lam", said, re.IGNORECASE):
            yield spot(statement, text=shown(statement), what="the sum falls by gamma times lambda in each step")


@suspects("sign of the entropy")
def _entropy(program: Program) -> Iterator[Spot]:
    """Find a value and `alpha * log_prob` with one sign: a target is q - alpha * log_prob, a loss its negative."""
    scale = re.compile(r"alpha|ent_?coe?f?|temp|entropy", re.IGNORECASE)
    for name, value, _ in named_values(program):
        terms = signed(program, value)
        likely = [
            one for one, part in terms for it in [factors(part)] if len(it) > 1 and _is_likely(program, it, scale)
        ]
        valued = [
            one for one, part in terms if _Q.search(word(program, part)) or called(program, part) in {"min", "minimum"}
        ]
        lowered = bool(re.search(r"loss|objective", name))
        if len(likely) != 1 or len(valued) != 1 or len(terms) > 3:
            continue
        if likely[0] == valued[0] or (lowered and valued[0] > 0 and "critic" not in name):
            yield spot(value, text=shown(value))


def _is_likely(program: Program, parts: list[ast.expr], scale: re.Pattern[str]) -> bool:
    names = [word(program, one) for one in parts]
    return any(map(_LIKELY.search, names)) and any(scale.search(one) for one in names if not _LIKELY.search(one))


@suspects("target of the entropy")
def _entropy_target(program: Program) -> Iterator[Spot]:
    for name, value, _ in named_values(program):
        if re.search(r"target_?ent", name, re.IGNORECASE):
            sizes = re.search(r"act|shape|prod|dim", text(value)) and "log" not in text(value)
            if sizes and not re.search(r"(^|[(\s*])-", text(value)):
                yield spot(value, text=shown(value))
        elif re.search(r"alpha_?loss|loss_?alpha|ent_?coef_?loss", name):
            for one in ast.walk(value):
                if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
                    sides = word(program, one.left), word(program, one.right)
                    if _LIKELY.search(sides[0]) and re.search(r"target_?ent", sides[1]):
                        yield spot(value, text=shown(value))


@suspects("squashed action without its correction")
def _squashed(program: Program) -> Iterator[Spot]:
    """Find tanh of a sample whose log_prob has no term of the derivative of tanh, or one with the wrong sign."""
    for call in program.calls:
        given = operand(program, call)
        if called(program, call) != "tanh" or given is None:
            continue
        drawn = called(program, held(program, bare(program, given))) in {"rsample", "sample"}
        inside = around(program, call)
        corrected = re.search(r"1(\.0*)? -|softplus|TanhTransform|log\(2|log1p|jacob|correct|squash", inside)
        if drawn and ".log_prob(" in inside and not corrected:
            yield spot(call, text=shown(call), what="the density of a squashed action is divided by 1 - tanh(x)**2")
    for node in program.nodes:
        added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _LIKELY.search(text(node.target))
        if (
            added
            and isinstance(node, ast.AugAssign)
            and re.search(r"log\(.*1(\.0*)? - .*(\*\* 2|pow|square)", text(node.value))
        ):
            yield spot(
                node, text=shown(node), what="the logarithm of 1 - tanh(x)**2 is subtracted from that of the density"
            )


@suspects("larger of two critics")
def _larger(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        if called(program, call) in {"max", "maximum"} and len(call.args) == 2:
            names = [word(program, one) for one in call.args]
            pair = all(re.search(r"(^|_)(q|critic|v|value)s?_?[12ab](_\w*)?$", one, re.IGNORECASE) for one in names)
            if pair and names[0] != names[1] and "loss" not in text(call):
                yield spot(call, text=shown(call))


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
                yield spot(one.call, text=shown(one.call), name=other)
                break


@suspects("reward of one step weighs an action")
def _rewarded(program: Program) -> Iterator[Spot]:
    """Find `-log_prob * reward` in a script that has a discount."""
    if not mentions_any(program, GAMMA):
        return
    for node in program.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            names = [word(program, one) for one in factors(node)]
            likely = any(_LIKELY.search(one) for one in names)
            if (
                likely
                and len(names) == 2
                and any(re.search(r"^(b_|batch_)?(r|rews?|rewards?)(_batch|_t|_b)?$", one) for one in names)
            ) and not _replaced(program, node):
                yield spot(node, text=shown(node))


def _replaced(program: Program, node: ast.BinOp) -> bool:
    """Tell whether the rewards are sums already, by what is assigned to them or looped over."""
    for one in factors(node):
        inner = bare(program, one)
        for bound in program.bindings(program.scope(inner), inner.id) if isinstance(inner, ast.Name) else ():
            if re.search(r"return|discount|gamma|cum|\bR\b|zip", text(bound.statement)):
                return True
    return bool(re.search(r"discount\w*\(|for \w*,? ?\w* in zip\([^)]*(return|discount|R)", around(program, node)))


@suspects("records of earlier episodes")
def _records(program: Program) -> Iterator[Spot]:
    """Find lists of log-probabilities or rewards that grow in a loop with a backward pass and are never emptied."""
    whole = around(program, program.tree)
    for call in program.calls_of(".append"):
        receiver = operand(program, call)
        name = text(receiver)
        if not re.search(
            r"^(\w+\.)*(saved_|episode_)?(log_probs?|logprobs?|saved_actions?|rewards|entropies|values)$", name
        ):
            continue
        last = name.rpartition(".")[2]
        emptied = (
            rf"del [^\n]*\b{last}\b|\b{last}\.clear\(|\b{last}\[:\] =|\.(clear|reset|clean|empty|init)\w*\("
            rf"|\b{last} = |\b{last}, .* = |\b{last}: "
        )
        emptied_at = [one.start() for one in re.finditer(emptied, whole)]
        made = [
            one
            for one in program.nodes
            if isinstance(one, ast.Assign | ast.AnnAssign)
            and last
            in [
                word(program, it)
                for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
                for it in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
        ]
        outside = (
            len(made) == 1
            and not program.loops(made[0])
            and (program.function(made[0]) is None or getattr(program.function(made[0]), "name", "") == "__init__")
        )
        if outside and len(emptied_at) <= 1 and program.loops(call) and ".backward()" in whole:
            yield spot(call, text=shown(call), name=name)


@suspects("averaged before it is weighted")
def _averaged(program: Program) -> Iterator[Spot]:
    """Find `log_probs.mean() * returns`."""
    for node in program.nodes:
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        parts = factors(node)
        parts = [one.operand if isinstance(one, ast.UnaryOp) else one for one in parts]
        means = [one for one in parts if called(program, one) == "mean" and _LIKELY.search(word(program, one))]
        gains = [one for one in parts if re.search(r"adv|return|reward|gain|delta|^[GR]$", word(program, one))]
        if means and gains:
            yield spot(node, text=shown(node))


@suspects("gradient lost in a number")
def _numbers(program: Program) -> Iterator[Spot]:
    """Find `values.append(value.item())` where a loss needs the gradient of the values."""
    for call in program.calls_of(".append"):
        given = call.args[0] if call.args else None
        cut = isinstance(given, ast.Call) and called(program, given) in {"item", "detach", "float", "numpy"}
        receiver = word(program, operand(program, call))
        mine = re.search(r"^(saved_)?(log_probs?|logprobs?|(state_)?values?|entrop\w+|critic_values)$", receiver)
        own_pass = len(re.findall(r"\.log_prob\(", source(program))) == 1 and "ratio" not in source(program)
        if cut and mine and own_pass and "backward" in source(program) and "evaluate" not in source(program):
            yield spot(call, text=shown(call))


@suspects("gradients of one player kept")
def _uncleared(program: Program) -> Iterator[Spot]:
    """Find one of several optimizers that steps and never clears its gradients."""
    if re.search(r"\.grad = ", source(program)):
        return  # what it sets needs no clearing
    steps = {
        text(one.value): call
        for call in program.calls_of(".step")
        for one in [call.func]
        if isinstance(one, ast.Attribute) and is_optimizer(program, one.value)
    }
    clears = {text(operand(program, call)) for call in program.calls_of(".zero_grad")}
    known = all(is_optimizer(program, operand(program, call) or call) for call in program.calls_of(".zero_grad"))
    missing = [call for name, call in steps.items() if name not in clears]
    if len(steps) > 1 and clears and known and len(missing) == 1 and clears <= set(steps):
        yield spot(missing[0], text=shown(missing[0]))


_QUICK = 0.99
"""The largest factor per step that ends the exploration after a few episodes."""


@suspects("exploration over after a few episodes")
def _explored(program: Program) -> Iterator[Spot]:
    """Find `epsilon *= 0.98` in the loop over the steps of an episode."""
    for node in program.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        loops = program.loops(node)
        explores = re.search("eps|explor", ident(target))
        if not isinstance(node, ast.Assign | ast.AugAssign) or len(loops) < 2 or not explores:
            continue
        factor = _factor_of(program, node, text(target))
        acts = [one for one in program.calls_of(".step") if one.args and loops[0] in program.loops(one)]
        inside = set(ast.walk(loops[0]))
        tests = [text(one.test) for one in program.outward(node) if isinstance(one, ast.If) and one in inside]
        plain = all(re.search(r"eps|explor|len\(|mem|buffer|replay", one) for one in tests)
        if factor is not None and 0 < factor <= _QUICK and acts and plain:
            yield spot(node, text=shown(node), steps=f"{math.log(0.1) / math.log(factor):.0f}")


def _factor_of(program: Program, node: ast.Assign | ast.AugAssign, name: str) -> float | None:
    """Return the number by which a statement multiplies a variable."""
    if isinstance(node, ast.AugAssign):
        return setting(program, node.value) if isinstance(node.op, ast.Mult) else None
    for one in ast.walk(node.value):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult) and name in {text(one.left), text(one.right)}:
            return setting(program, one.right if text(one.left) == name else one.left)
    return None


SUSPECTS = suspects_of(globals())
