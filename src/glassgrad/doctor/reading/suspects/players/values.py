"""Suspects about reinforcement learning: targets, exploration, environments, returns, policies and their updates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.actors import setting
from glassgrad.doctor.reading.nodes import callee_of, elements, factors_of, ident, is_op, object_of, target_of, within
from glassgrad.doctor.reading.program import Program, argument, constant, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import (
    assigned,
    calls_of,
    mentions_any,
    named_values,
    source,
    text,
    text_around,
    words_in,
)
from glassgrad.doctor.reading.suspects.players.algebra import GAMMA, REWARD, core, stands_for, word
from glassgrad.doctor.reading.values import layer

_ENDS = re.compile(
    r"done|term|mask|final|trunc|cont|alive|live|dead|end|not_|(^|_)ds?(_|\d|$)|dw|last|is_over|next_exist",
    re.IGNORECASE,
)
_DONE = re.compile(r"done|terminal|terminated|(^|_)terms?(_|$)")
_ENDED = re.compile(r"^(b_|batch_|next_|is_)?(dones?|terminals?|terminated|terminations?)(_batch|_t|_b|_flags?)?$")
_GOING = re.compile(r"^(b_|batch_)?(not_dones?|non_?terminals?|notdones?|continues?|alive)(_batch|_t|_b)?$")
_TARGET = re.compile(r"(^|_)(target|tgt)(_|s?\d*$)|target$", re.IGNORECASE)
_STATE = re.compile(r"^(b_|batch_)?(cur\w*_|current_)?(states?|obs|observations?|s|o)(_batch|_b|_t|_tensor)?$")
_STATELIKE = re.compile(r"state|obs|^s$|^o$|^x$|cur", re.IGNORECASE)
_NEXT = re.compile(r"next|new|_prime|\w_$|2$|_p$", re.IGNORECASE)
_ASIDE = re.compile(r"^_|^$|info|idx|ind(ex|ices)|weight|log|env|action|^a")
_MOST_PARTS = 7
"""The number of parts that a transition does not have."""
_STORES = frozenset({"push", "append", "add", "store", "remember", "put", "insert", "cache", "save", "memorize"})
_EPSILON = re.compile(r"eps", re.IGNORECASE)


# --- values of the future ---


def _discounted(program: Program) -> Iterator[tuple[ast.BinOp, list[ast.expr]]]:
    """Yield the products with a discount, each with its other factors."""
    for node in program.every(ast.BinOp):
        if is_op(node, ast.Mult):
            outer = program.parents.get(node)
            if is_op(outer, ast.Mult):
                continue
            parts = factors_of(node)
            others = [one for one in parts if not GAMMA.search(word(program, one))]
            if len(others) < len(parts) and others:
                yield node, others


def _targets(program: Program) -> Iterator[tuple[ast.BinOp, list[ast.expr]]]:
    """Yield `r + gamma * next`, with the factors beside the discount."""
    for product, others in _discounted(program):
        outer = program.parents.get(product)
        if is_op(outer, ast.Add):
            other = outer.left if outer.right is product else outer.right
            if any(REWARD.search(one) for one in words_in(other)):
                yield outer, others


@suspects("future valued behind the end")
def _bootstraps(program: Program) -> Iterator[Spot]:
    """Find `r + gamma * next` without the flag of the end, in a script that has one."""
    flagged = mentions_any(program, _DONE)
    for node, others in _targets(program):
        said = program.statement(node)
        if _unread_end(program, node):
            yield look_at(node)
        if not flagged or _unread_end(program, node):
            continue
        mine = [*words_in(said), *(one for part in others for one in _sources(program, part))]
        recursive = isinstance(said, ast.Assign) and any(
            text(said.targets[0]) == text(one) or word(program, said.targets[0]) == word(program, one) for one in others
        )
        guarded = [one.test for one in program.outward(node) if isinstance(one, ast.If | ast.IfExp | ast.While)]
        names = {it for one in others for it in (*words_in(one), *_sources(program, one))}
        masked = [rf"\b{re.escape(one)}\[[^\]\n]*(mask|done|final|term|end)" for one in sorted(names)]
        if recursive or any(map(_ENDS.search, mine)) or any(map(_ENDS.search, (text(one) for one in guarded))):
            continue
        inside = text_around(program, node) if program.function(node) is not None else ""
        returned = re.search(r"if [^\n]*(None|done|end|final)[^\n]*:\s+(return|continue)", inside)
        if not returned and not any(re.search(one, text_around(program, node)) for one in masked):
            yield look_at(node)


def _unread_end(program: Program, node: ast.expr) -> bool:
    """Tell whether the function around a target gets a flag of the end, or more than it needs of a transition, unread.

    A flag is a parameter of such a name. A part of a transition is what is unpacked beside the reward.
    """
    around = program.around(node)
    reads = [one for one in within(around, ast.Name) if isinstance(one.ctx, ast.Load)]
    kept = [(text(target), part) for target, value, _ in assigned(around) for part in within(value, ast.Name)]
    casts = {part for target, part in kept if target == part.id}
    read = {one.id for one in reads if one not in casts}
    given = [one.arg for one in within(around.args, ast.arg)] if not isinstance(around, ast.Module) else []
    if any(_ENDED.search(one) and one not in read for one in given):
        return True
    for one in within(around, ast.Assign):
        sampled = isinstance(one.value, ast.Call) and callee_of(one.value) not in {"step", "reset"}
        names = [ident(part) for part in elements(one.targets[0])] if sampled else []
        unread = [name for name in names if name not in read and not _ASIDE.search(name)]
        if len(names) > 3 and len(unread) == 1 and sum(bool(REWARD.search(name)) for name in names) == 1:
            return not REWARD.search(unread[0]) and len(names) < _MOST_PARTS
    return False


def _sources(program: Program, node: ast.expr, depth: int = 0) -> Iterator[str]:
    """Yield the names in what a name stands for, a few steps back."""
    for one in within(node, ast.Name):
        if depth < 3:
            value = program.value_of(one)
            for bound in program.bindings(program.scope(one), one.id):
                yield from words_in(bound.value) if bound.value is not None else ()
            if value is not None:
                yield from words_in(value)
                yield from _sources(program, value, depth + 1)


@suspects_rows("future counted where the episode ends", _discounted)
def _inverted(program: Program, node: ast.BinOp, others: list[ast.expr]) -> Iterator[Spot]:
    for one in others:
        turned = is_op(one, ast.Sub) and number(one.left) == 1
        name = word(program, one.right if turned and isinstance(one, ast.BinOp) else one)
        is_not = isinstance(one, ast.UnaryOp)
        origin = text(stands_for(program, core(program, one)))
        if is_not or re.search(r"1(\.0*)? -|~|not |logical_not", origin.replace(text(one), "")):
            continue
        turned_before = r"0(\.0)? if \w*(done|term)\w* else 1|1(\.0)? - (int|float)?\(?\w*(done|term)"
        if re.search(turned_before, source(program)) and not turned:
            continue
        if (not turned and _ENDED.search(name)) or (turned and _GOING.search(name)):
            yield spot(node, text=shown(one))


@suspects_rows("index in place of the best value", _discounted)
def _index(program: Program, node: ast.BinOp, others: list[ast.expr]) -> Iterator[Spot]:
    for one in others:
        inner = stands_for(program, one)
        while isinstance(inner, ast.Call) and program.called(inner) in {"detach", "float", "unsqueeze", "view"}:
            inner = stands_for(program, program.operand(inner) or inner.func)
        best = isinstance(inner, ast.Subscript) and program.called(inner.value) == "max"
        best = best and isinstance(inner, ast.Subscript) and constant(inner.slice) == 1
        if best or program.called(inner) == "argmax" or text(inner).endswith(".indices"):
            yield spot(inner if inner is not one else node, text=shown(inner))


@suspects("best value over the batch")
def _over_batch(program: Program) -> Iterator[Spot]:
    """Find `next_q.max(0)`, `next_q.max()` and `q.gather(0, actions)` in code about batches."""
    if not mentions_any(program, GAMMA) or not mentions_any(program, _DONE):
        return
    for call in program.calls:
        name, given = program.called(call), program.operand(call)
        if given is None or name not in {"max", "amax", "argmax", "gather"}:
            continue
        place = 0 if given is not (call.args[0] if call.args else None) else 1
        dim = argument(call, "dim", place) or argument(call, "axis")
        valued = any(re.search(r"next|target|^q", one, re.IGNORECASE) for one in words_in(given))
        wrong = number(dim) == 0 or (dim is None and len(call.args) <= place and name in {"max", "amax"})
        if not valued or not wrong or isinstance(given, ast.List | ast.Tuple):
            continue
        if "batch" in text_around(program, call) and not program.names.full(call.func).startswith("numpy"):
            yield look_at(call)


@suspects("target network reads the present")
def _present(program: Program) -> Iterator[Spot]:
    if not mentions_any(program, GAMMA):
        return
    for call in program.calls:
        name = callee_of(call)
        if not _TARGET.search(name) or not call.args:
            continue
        if _STATE.search(word(program, call.args[0])) and not name.startswith(("get", "set")):
            yield look_at(call)


@suspects("future valued by the network that learns")
def _by_learner(program: Program) -> Iterator[Spot]:
    """Find `max q(next)` of the learning network, or an action of the learning actor, where a target network exists."""
    targets = [one for one in program.calls if _TARGET.search(callee_of(one))]
    made = {one for one, value, _ in named_values(program) if _TARGET.search(one) and isinstance(value, ast.Call)}
    nets = {one for one in made if re.search(r"net|model|actor|critic|q|dqn|policy", one)}
    if not nets or not mentions_any(program, GAMMA):
        return
    for node, others in _targets(program):
        for one in others:
            value = stands_for(program, one)
            best = any(program.called(part) in {"max", "amax"} for part in ast.walk(value))
            said = [*words_in(value), *_sources(program, value)]
            known = "argmax" not in said and "gather" not in said and not any(map(_TARGET.search, said))
            if best and known and _asks_net(program, value):
                yield spot(value if value is not one else node, text=shown(value))
    for call in targets:
        for given in call.args[1:]:
            action = stands_for(program, given)
            name = callee_of(action)
            root = re.sub(r"_?(net|network|model|local)$", "", name)
            twin = any(one != name and root in one for one in nets)
            if re.search(r"^(actor|policy|pi|mu)\w*$", name) and not _TARGET.search(name) and twin:
                yield look_at(action)


def _asks_net(program: Program, value: ast.expr) -> bool:
    """Tell whether a value is computed by a network that the function does not get as a parameter."""
    for one in ast.walk(value):
        inner = stands_for(program, one) if isinstance(one, ast.Name) else one
        call = core(program, inner) if isinstance(inner, ast.expr) else inner
        named = word(program, call) if isinstance(call, ast.Call) else ""
        if re.search(r"net|model|policy|agent|dqn|online|local|^q", named, re.IGNORECASE):
            return not program.is_parameter(program.scope(value), named)
    return False


@suspects("weights copied from the copy")
def _copied(program: Program) -> Iterator[Spot]:
    for call in program.calls_of(".load_state_dict"):
        receiver = object_of(call)
        given = call.args[0] if call.args else None
        origin = program.operand(given) if isinstance(given, ast.Call) else None
        if receiver is None or origin is None or program.called(given or call) != "state_dict":
            continue
        if _TARGET.search(word(program, origin)) and not _TARGET.search(word(program, receiver)):
            yield look_at(call)
    for node in program.every(ast.For):
        if isinstance(node.iter, ast.Call) and program.called(node.iter) == "zip":
            yield from _copied_in(program, node, node.iter)


def _copied_in(program: Program, loop: ast.For, pairs: ast.Call) -> Iterator[Spot]:
    names = [getattr(one, "id", "") for one in getattr(loop.target, "elts", ())]
    targets = [bool(re.search(r"targ|tgt", text(one))) for one in pairs.args]
    if len(names) != 2 or sorted(targets) != [False, True] or "parameters" not in text(pairs):
        return
    learner = names[targets.index(False)]
    for call in within(loop, ast.Call):
        function = call.func
        changes = isinstance(function, ast.Attribute) and function.attr in {"copy_", "lerp_"}
        if changes and text(call.func).split(".")[0] == learner:
            yield look_at(call)


# --- acting ---


@suspects_each("exploration turned round", ast.If | ast.IfExp)
def _exploration(program: Program, node: ast.If | ast.IfExp) -> object:
    if not isinstance(node.test, ast.Compare):
        return False
    left, right = node.test.left, node.test.comparators[0]
    drawn = re.compile(r"\b(random|rand|uniform|random_sample|item)\(")
    below = isinstance(node.test.ops[0], ast.Lt | ast.LtE)
    eps = right
    if drawn.search(text(right)) and not drawn.search(text(left)):
        below, eps = not below, left
    elif not drawn.search(text(left)):
        return False
    body = node.body if isinstance(node, ast.IfExp) else ast.Module(node.body, [])
    random = re.search(r"randint|randrange|choice|\.sample\(|random_action|integers\(", text(body))
    greedy = re.search(r"argmax|\.max\(|greedy|best", text(body))
    value = setting(program, eps)
    named_so = any(map(_EPSILON.search, words_in(eps)))
    kept = value is not None and 0.5 < value < 1
    odd = named_so and not kept and ((random and not greedy and not below) or (greedy and not random and below))
    return odd and look_at(node.test, what="a random action" if random else "the best action")


@suspects_each("bound on the wrong side", calls_of("min", "max", ".minimum", ".maximum"))
def _bound(program: Program, call: ast.Call) -> object:
    """Find `min(eps_min, eps * decay)`, and `max(1.0, step / total)` for a weight that grows to 1."""
    lowest = re.compile(r"eps\w*_?(min|end|final|low)|(min|end|final|low)\w*_?eps|min_lr|lr_min", re.IGNORECASE)
    name, parts = program.called(call), call.args
    if len(parts) != 2:
        return False
    first, second = parts if number(parts[0]) is not None or lowest.search(text(parts[0])) else parts[::-1]
    falls = re.search(r"decay|\*|-", text(second)) and not re.search(r"\+", text(second))
    lowest_one = lowest.search(text(first)) and not lowest.search(text(second).replace(text(first), ""))
    grows = is_op(second, ast.Div) and number(first) == 1
    target = next((one for one, value, _ in named_values(program) if value is call), "")
    weight = re.search(r"beta|weight|anneal|alpha|kl|coef|lam|warm|ramp|frac|ratio|p$", target)
    return (name.startswith("min") and falls and lowest_one) or (name.startswith("max") and grows and weight)


@suspects_each("state moved on too early", ast.Assign)
def _moved(program: Program, node: ast.Assign) -> Iterator[Spot]:
    """Find `state = next_state` before the transition with both is stored."""
    if not isinstance(node.value, ast.Name) or len(node.targets) != 1:
        return
    old, new = text(node.targets[0]), node.value.id
    if not _STATELIKE.search(old) or not _NEXT.search(new):
        return
    body = _block(program, node)
    for later in body[body.index(node) + 1 :] if node in body else ():
        for call in ast.walk(later):
            stores = program.called(call) in _STORES
            if stores and {old, new} <= {text(one) for one in within(call, ast.Name)}:
                yield look_at(node)
                break


def _block(program: Program, node: ast.stmt) -> list[ast.stmt]:
    outer = program.parents.get(node)
    blocks = [getattr(outer, name, None) for name in ("body", "orelse", "finalbody")]
    return next((one for one in blocks if isinstance(one, list) and node in one), [])


def _steps_of(program: Program) -> Iterator[tuple[ast.Assign, list[ast.expr]]]:
    """Yield `next, reward, done, info = env.step(action)` in loops, with the names on its left."""
    for call in program.calls_of(".step"):
        statement = program.statement(call)
        target = target_of(statement)
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Tuple) or len(target.elts) < 3:
            continue
        if statement.value is call and program.loops(call):
            yield statement, target.elts


@suspects_rows("reward stored before its step", _steps_of)
def _stored_early(program: Program, statement: ast.Assign, names: list[ast.expr]) -> Iterator[Spot]:
    """Find `buffer.store(state, action, reward)` above the `env.step(action)` that gives the reward."""
    body, reward, action = _block(program, statement), text(names[1]), statement.value
    given = text(action.args[0]) if isinstance(action, ast.Call) and action.args else ""
    for earlier in body[: body.index(statement)] if statement in body and given else ():
        for call in within(earlier, ast.Call):
            if program.called(call) in _STORES and {reward, given} <= {text(one) for one in ast.walk(call)}:
                yield look_at(call, statement, other=shown(statement))


@suspects_rows("state never moves on", _steps_of)
def _stays(program: Program, statement: ast.Assign, names: list[ast.expr]) -> object:
    new, loop = text(names[0]), program.loops(statement)[0]
    if not _NEXT.search(new) or not isinstance(names[0], ast.Name):
        return False
    sets = [one for one in ast.walk(loop) if isinstance(one, ast.Assign | ast.AnnAssign) and one is not statement]
    sets = [one for one in sets if one.value is not None and new in words_in(one.value)]
    moves = any(_STATELIKE.search(name) and name != new for one in sets for name in _assigned(one))
    held = re.escape(text(object_of(statement.value)))  # the world itself may tell the state: s = env.state.copy()
    moves |= re.search(rf"= .*\b{held}\.(?!reset|step|action)", text(loop)) is not None
    return not moves and not re.search(rf"self\.\w+ = {re.escape(new)}\b", text(loop)) and look_at(statement)


def _assigned(node: ast.Assign | ast.AnnAssign) -> list[str]:
    return [name for one in (node.targets if isinstance(node, ast.Assign) else [node.target]) for name in words_in(one)]


@suspects_rows("environment never begun anew", _steps_of)
def _reset(program: Program, statement: ast.Assign, names: list[ast.expr]) -> Iterator[Spot]:
    """Find episodes in a loop without a reset in it, and loops of steps that pass over the end of an episode."""
    loops, function = program.loops(statement), text(statement.value)
    receiver = function.partition(".step(")[0]
    if re.search(r"envs|vec", receiver) or _begins_itself(program, receiver):
        return
    outer = loops[-1]
    inside = re.search(r"reset\w*\(|rollout|run_episode", text(outer))
    ends = next((text(one) for one in names if re.search(r"done|term|^d$|over", text(one))), "")
    if len(loops) > 1 and not inside and "reset(" in text_around(program, statement):
        loop = f"for {shown(outer.target)} in {shown(outer.iter)}" if isinstance(outer, ast.For) else "while"
        yield spot(outer, statement, text=loop, what="starts no new episode")
    elif ends and isinstance(loops[0], ast.For) and not _is_tested(loops, ends) and not inside:
        yield look_at(statement, what="goes on after the end of an episode")


def _begins_itself(program: Program, receiver: str) -> bool:
    """Tell whether the only class of the script with a method `step` begins anew where an episode is over."""
    steps = [one.methods["step"] for one in program.classes.values() if "step" in one.methods]
    own = len(steps) == 1 and receiver != "self"
    return own and bool(re.search(r"where\(|reset\(|\[~?\w*(done|over|end|term|fell|out)\w*\] =", text(steps[0])))


def _is_tested(loops: list[ast.For | ast.AsyncFor | ast.While], name: str) -> bool:
    tests = [one.test for loop in loops for one in ast.walk(loop) if isinstance(one, ast.If | ast.While | ast.IfExp)]
    return any(name in words_in(test) or _DONE.search(text(test)) for test in tests)


@suspects_rows("copy that is none", named_values)
def _alias(program: Program, name: str, value: ast.expr, statement: ast.stmt) -> Iterator[Spot]:
    """Find `target_net = policy_net`: both names are one network."""
    plain = isinstance(value, ast.Name | ast.Attribute) and not isinstance(statement, ast.Return)
    plain = plain and text(value) != name  # `self.global_net = global_net` keeps what it got
    if plain and re.search(
        r"^(target|tgt|teacher|ema|shadow|frozen|ref|old|prev|global|best)_?(net|model|policy|q|actor|critic|\w*net)\w*$|_target$",
        name,
    ):
        made = stands_for(program, value)
        attributes = program.attribute(program.owner(value), value.attr) if isinstance(value, ast.Attribute) else []
        makers = [made, *(one.value for one in attributes if one.value is not None)]
        if any(layer(program, one) is not None for one in makers if isinstance(one, ast.Call)):
            yield look_at(statement)
