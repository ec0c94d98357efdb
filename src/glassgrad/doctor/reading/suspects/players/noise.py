"""Suspects about diffusion, flows and energies: noise and its schedule, velocities, guidance, signs."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.nodes import (
    arguments,
    both_ways,
    callee_of,
    elements,
    factors_of,
    ident,
    is_negative,
    is_op,
    names_in,
    target_of,
    within,
)
from glassgrad.doctor.reading.program import Class, Function, Program, argument, number
from glassgrad.doctor.reading.rule import Spot, shown, spot
from glassgrad.doctor.reading.suspects.form import look_at, operations, suspects, suspects_each, suspects_rows
from glassgrad.doctor.reading.suspects.lookup import (
    assigned,
    assignments,
    classes,
    mentions_any,
    named_values,
    text,
    text_around,
)
from glassgrad.doctor.reading.suspects.players.algebra import core, signed, stands_for, word
from glassgrad.doctor.reading.values import layer, losses

_MOST_LEFT = 0.4
"""The largest share of the data in the last level of a schedule that may count as noise alone."""


@suspects("noise that nobody added")
def _fresh(program: Program) -> Iterator[Spot]:
    """Find a loss against new noise or against the noised input, where the model predicts the noise in it."""
    levels = r"alpha_?(bar|s?_?cum)|beta_?s|diffusion|noise_?sched|timestep|sqrt_one"
    if not mentions_any(program, re.compile(levels, re.IGNORECASE)):
        return
    for one in losses(program):
        if one.kind not in {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"} or one.target is None:
            continue
        target = one.target
        fresh = program.called(target) in {"randn_like", "randn"}
        named_so = re.search(r"^(x_?t|x_?noisy|noisy\w*|noised\w*|xt|z_?t)$", word(program, target))
        noised = named_so and word(program, one.input)
        if fresh or noised:
            yield look_at(one.call)


_POSTERIOR = re.compile(r"beta|var(iance)?(_|\b|s)|log_?var", re.IGNORECASE)
_DEVIATION = re.compile(r"sigma|std", re.IGNORECASE)
_LEVEL = re.compile(r"1(\.0)? - |alpha|a_?bar|minus|next|prev|down", re.IGNORECASE)
"""A share of the signal or of the noise, by which a sampler without chance scales the predicted noise."""


@suspects_each("predicted noise instead of new noise", operations(ast.Add))
def _reused(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find `mean + sigma * predicted` where the mean has the predicted noise in it already."""
    for mean, noised in both_ways(node):
        parts = factors_of(noised)
        noise = next((one for one in parts if isinstance(one, ast.Name) and _is_predicted(program, one)), None)
        scale = " ".join(text(one) for one in parts if one is not noise)
        if noise is None or len(parts) != 2 or _LEVEL.search(scale):
            continue
        of_mean = re.search(r"mean|(^|_)mu(_|$)", word(program, mean))
        spread = _POSTERIOR.search(scale) or (_DEVIATION.search(scale) and of_mean)
        if spread and noise.id in _within(program, mean):
            yield look_at(node, name=noise.id)


def _is_predicted(program: Program, node: ast.expr, depth: int = 0) -> bool:
    """Tell whether a value is the output of something that the library does not have, as a model of the script."""
    if depth > 3 or "rand" in text(node) or "normal" in text(node):
        return False
    if isinstance(node, ast.Name):
        value = program.source_of(node)
        return value is not None and value is not node and _is_predicted(program, value, depth + 1)
    if isinstance(node, ast.Attribute | ast.Subscript):
        return _is_predicted(program, node.value, depth + 1)
    if isinstance(node, ast.BinOp):
        return any(_is_predicted(program, one, depth + 1) for one in (node.left, node.right))
    return isinstance(node, ast.Call) and not program.names.full(node.func) and bool(node.args)


def _within(program: Program, node: ast.expr, depth: int = 0) -> set[str]:
    """Return the variables in an expression and in what its variables stand for."""
    found = set(within(node, ast.Name))
    names = {one.id for one in found}
    for one in found if depth < 3 else ():
        value = program.value_of(one)
        if value is not None and one not in ast.walk(value):
            names |= _within(program, value, depth + 1)
    return names


@suspects("schedule of the noise")
def _schedule(program: Program) -> Iterator[Spot]:
    """Find a product over the betas, a sum of alphas, and noise levels that begin with 1."""
    for call in program.calls:
        name, given = program.called(call), program.operand(call)
        said = word(program, given)
        product = name == "cumprod" and re.search(r"^(self_)?betas?$", said)
        if product or (name == "cumsum" and re.search(r"^alphas?$", said)):
            yield look_at(call)
    for node in program.every(ast.For):
        if not isinstance(node.iter, ast.Call) or program.called(node.iter) not in {"range", "trange"}:
            continue
        function = program.function(node)
        samples = function is not None and re.search(r"sample|generat|denoise|p_sample_loop", function.name)
        rising = "-1" not in text(node.iter) and "revers" not in text(node)
        updates = re.search(r"alpha|beta|sigma", text(node)) and re.search(r"randn|noise", text(node))
        index = text(node.target)
        turned = re.search(rf"- {index}\b|- 1 - {index}\b", text(node))
        if not samples or not rising or not updates or turned:
            continue
        if "backward" not in text(node) and f"[{index}]" in text(node):
            yield spot(node, text=f"for {shown(node.target)} in {shown(node.iter)}")


@suspects("noise that ends too early")
def _ends_early(program: Program) -> Iterator[Spot]:
    """Find `betas = linspace(0.0001, 0.02, 100)`, made for a thousand steps, whose last level still shows the data."""
    for call in program.calls_of(".cumprod") and program.calls:
        statement = program.statement(call)
        given = [argument(call, *names) for names in (("start", 0), ("end", 1), ("steps", 2))]
        given = [one or argument(call, name) for one, name in zip(given, ("start", "stop", "num"), strict=True)]
        named = re.search(r"betas?\b", text(statement).partition("=")[0], re.IGNORECASE)
        if program.called(call) != "linspace" or not named or isinstance(program.parents.get(call), ast.BinOp):
            continue
        start, end, steps = (_known(program, one) for one in given)
        if start is None or end is None or steps is None or not 0 < start < end < 1 or not 4 < steps < 1000:
            continue
        betas = [start + (end - start) * at / (steps - 1) for at in range(int(steps))]
        left = math.sqrt(math.prod(1 - one for one in betas))
        if left > _MOST_LEFT:
            yield look_at(call, steps=str(int(steps)), left=f"{left:.0%}")


def _known(program: Program, node: ast.expr | None) -> float | None:
    """Return the only number that an expression can be, through names, parameters and their defaults."""
    one = flow(program).end(node) if node is not None else None
    return number(one.node) if one is not None and not one.path else None


@suspects("level before is one less")
def _one_less(program: Program) -> Iterator[Spot]:
    """Find `prev_t = t - 1` in a script whose sampler skips steps of the training."""
    strided = r"stride|num_inference|inference_steps|step_ratio|sample_steps|sampling_steps|skip|ddim|respac"
    everywhere = mentions_any(program, re.compile(strided))
    noised = mentions_any(program, re.compile(r"alpha|sigma|beta|nois", re.IGNORECASE))
    for name, value, statement in named_values(program):
        if not is_op(value, ast.Sub) or number(value.right) != 1:
            continue
        if not everywhere and not (noised and _is_strided(program, value.left)):
            continue
        step = re.fullmatch(r"t|ts|step|timestep|timesteps|cur_t|time", word(program, value.left))
        if step and re.search(r"prev|next|^s$|_s$", name):
            yield look_at(statement)


def _is_strided(program: Program, step: ast.expr) -> bool:
    """Tell whether a variable runs through some of the steps: `linspace(T - 1, 0, 20)`, `range(T - 1, -1, -10)`."""
    for loop in program.loops(step):
        if not isinstance(loop, ast.For) or text(step) not in {one.id for one in within(loop.target, ast.Name)}:
            continue
        if _skips(program, loop.iter):
            return True
    return False


def _skips(program: Program, levels: ast.expr) -> bool:
    """Tell whether an expression, or a name in it, holds some of the steps of a training, and not each."""
    for one in (levels, *(stands_for(program, one) for one in within(levels, ast.Name))):
        said = re.sub(r"linspace\((0, )?([\w.]+) - 1, (0, )?\2\b", "", text(one))  # it visits each step
        if re.search(r"linspace\(|\[::-?(?!1\])[\w ]|ange\([^,]+, [^,]+, (?!-?1\b)", said):
            return True
    return False


@suspects_each("number of a step instead of its level", ast.For)
def _numbered(program: Program, loop: ast.For) -> Iterator[Spot]:
    """Find `for i in range(n): level = levels[i]; noise = model(x, full((b,), i))`, where the levels skip some."""
    pair = elements(loop.target) if callee_of(loop.iter) == "enumerate" else []
    index = ident(pair[0] if pair else loop.target)
    choices = [one.slice for one in within(loop, ast.Subscript)]
    chosen = [it for one in choices for part in within(one, ast.Name) for it in (part, stands_for(program, part))]
    parts = [it for one in (*choices, *chosen) for it in within(one, ast.Subscript) if text(it.slice) == index]
    levels = [loop.iter] if pair else [one.value for one in parts]
    noised = mentions_any(program, re.compile(r"alpha|sigma|beta|nois", re.IGNORECASE))
    if not index or not noised or not any(_skips(program, one) for one in levels):
        return
    for call in within(loop, ast.Call):
        named = layer(program, call.func) is not None or re.search(r"model|net\b|denois|score", text(call.func))
        for given in arguments(call)[1:] if named else ():
            held = stands_for(program, given)
            inner = {it for one in within(held, ast.Subscript) for it in ast.walk(one.slice)}
            if any(one.id == index and one not in inner for one in within(held, ast.Name)):
                yield spot(call if held is given else held, call, text=shown(call), index=index, given=shown(held))


@suspects_each("velocity turned round", operations(ast.Add))
def _velocity(program: Program, node: ast.BinOp) -> Iterator[Spot]:
    """Find a flow along (1 - t) * a + t * b whose target is a - b."""
    ends: dict[bool, str] = {}
    for side in (node.left, node.right):
        parts = [core(program, one) for one in factors_of(side)]
        rest = [text(one) for one in parts if not isinstance(one, ast.BinOp) and not re.match(r"t\w*$|time", text(one))]
        if len(parts) == 2 and len(rest) == 1:
            ends[any(isinstance(one, ast.BinOp) and number(one.left) == 1 for one in parts)] = rest[0]
    if set(ends) == {True, False}:
        place = program.around(node)
        for one in within(place, ast.BinOp):
            if is_op(one, ast.Sub) and (text(one.left), text(one.right)) == (ends[True], ends[False]):
                yield look_at(one)


@suspects_each("guidance that falls short", operations(ast.Sub))
def _guidance(program: Program, node: ast.BinOp) -> object:
    """Find classifier-free guidance with the two predictions exchanged."""
    left, right = word(program, node.left), word(program, node.right)
    free = re.compile(r"uncond|_u$|null|empty")
    return free.search(left) and re.search(r"cond|_c$|text", right) and not free.search(right) and "loss" not in left


@suspects_rows("energies with exchanged signs", named_values)
def _energies(program: Program, name: str, value: ast.expr, _: ast.stmt) -> object:
    """Find `energy(fake) - energy(real)` as a loss, and Langevin steps uphill."""
    energy = re.compile(r"energ|(^|_)(e|ebm)(_|$)", re.IGNORECASE)
    terms = signed(program, value)
    sides = {_drawn(part): sign for sign, part in terms if energy.search(text(part))}
    if "loss" not in name or sides.get("fake") != 1 or sides.get("real") != -1:
        return False
    return mentions_any(program, re.compile("langevin|ebm|energy", re.IGNORECASE)) and look_at(value)


def _drawn(node: ast.expr) -> str:
    said = text(node)
    return (
        "fake" if re.search(r"neg|sampl|fake|gen", said) else "real" if re.search(r"pos|data|real|\bx\b", said) else ""
    )


# --- flows ---


@suspects_each("log-determinant of the other direction", classes)
def _other_direction(program: Program, owner: Class) -> Iterator[Spot]:
    """Find two directions of an affine step that return one log-determinant, though one of them divides by the scale.

    A caller that subtracts one of the two knows of it.
    """
    found = [it for one in owner.methods.values() if (it := _change_of_volume(program, one)) is not None]
    shapes = {(way, sign) for way, sign, _, _ in found}
    names = {name for _, _, name, _ in found}
    if len(found) == 2 and len(names) == 1 and len(shapes) == 2 and len({sign for _, sign in shapes}) == 1:
        for way, sign, _, node in found:
            if way != sign and not _is_subtracted(program, node):
                yield look_at(node, what="multiplies by" if way > 0 else "divides by", why=_BOTH)
    for way, sign, _, node in found if len(found) == 1 else ():
        if way != sign and _joins_density(program, node):
            yield look_at(node, what="multiplies by" if way > 0 else "divides by", why=_ADDED)


_BOTH = "both directions return it with one sign"
_ADDED = "the script adds it to the density of what comes out"


def _joins_density(program: Program, node: ast.expr) -> bool:
    """Tell whether a script calls a step as `x, one = step(x)` and adds the second result to a density of x.

    The density of what goes into a step needs the opposite sign.
    """
    owner = program.owner(node)
    for target, value, statement in assignments(program):
        pair, around = elements(target), program.around(statement)
        plain = isinstance(value, ast.Call) and len(pair) == 2 and text(pair[0]) in {text(one) for one in value.args}
        if not plain or program.owner(statement) is owner:
            continue
        held = {text(pair[1])}
        held |= {text(one) for one, given, _ in assigned(around) if held & names_in(given)}
        added = "|".join(map(re.escape, sorted(held)))
        behind = [one for one in within(around, ast.BinOp) if one.lineno > statement.lineno]
        for density, other in (it for one in behind if is_op(one, ast.Add) for it in both_ways(one)):
            known = re.search(r"log_?p|prior|base|\*\* 2|pow\(2", text(density)) and text(pair[0]) in names_in(density)
            if known and re.fullmatch(added, text(other)):
                return not re.search(rf"-=? ({added})\b|-({added})\b", text_around(program, statement))
    return False


def _change_of_volume(program: Program, function: Function) -> tuple[int, int, str, ast.expr] | None:
    """Return whether a function multiplies by exp(s) (1) or divides (-1), the sign of its sum of s, s and the sum."""
    results = [one.value for one in within(function, ast.Return)]
    pair = results[0] if len(results) == 1 else None
    if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
        return None
    total = stands_for(program, pair.elts[1])
    sign = -1 if is_negative(total) else 1
    total = total.operand if isinstance(total, ast.UnaryOp) else total
    logarithm = program.operand(total) if isinstance(total, ast.Call) and program.called(total) == "sum" else None
    if isinstance(logarithm, ast.UnaryOp):
        sign, logarithm = -sign, logarithm.operand
    operations = within(function, ast.BinOp) if logarithm is not None else ()
    ways = {it for node in operations if (it := _scaling(program, node, text(logarithm)))}
    return (ways.pop(), sign, text(logarithm), total) if len(ways) == 1 else None


def _scaling(program: Program, node: ast.BinOp, logarithm: str) -> int:
    """Return 1 if an operation multiplies by exp(s), -1 if it divides by it, 0 for others."""
    sides = [node.right] if isinstance(node.op, ast.Div) else [node.left, node.right]
    for side in sides if isinstance(node.op, ast.Div | ast.Mult) else ():
        factor = stands_for(program, side)
        power = program.operand(factor) if isinstance(factor, ast.Call) and program.called(factor) == "exp" else None
        negative = is_negative(power)
        inner = power.operand if isinstance(power, ast.UnaryOp) else power
        if inner is not None and text(inner) == logarithm:
            return -1 if negative != isinstance(node.op, ast.Div) else 1
    return 0


def _is_subtracted(program: Program, node: ast.expr) -> bool:
    """Tell whether a call of the function around a node, or the name of its second result, is subtracted somewhere."""
    function = program.function(node)
    calls = program.calls_of(f".{function.name}") if function is not None else []
    if function is not None and function.name == "forward":
        return True  # called by the name of an object: the sign that the caller gives it is not read
    for call in calls:
        statement = program.statement(call)
        target = target_of(statement)
        name = text(target.elts[1]) if isinstance(target, ast.Tuple) and len(target.elts) == 2 else ""
        if not name or re.search(rf"-=? {re.escape(name)}\b|-{re.escape(name)}\b", text_around(program, call)):
            return True
    return not calls
