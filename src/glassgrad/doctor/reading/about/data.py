"""Rules about data: loaders, splits, shuffles and workers."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterator

from glassgrad.doctor.reading.about.calls import makes_model
from glassgrad.doctor.reading.about.datasets import on_test, trained_on
from glassgrad.doctor.reading.flow import flow
from glassgrad.doctor.reading.iterations import trains
from glassgrad.doctor.reading.names import last
from glassgrad.doctor.reading.nodes import (
    elements,
    has_attribute,
    holds,
    ident,
    is_name,
    mentions,
    method_of,
    names_in,
    object_of,
    of_self,
    target_text,
    within,
)
from glassgrad.doctor.reading.program import FUNCTIONS, Program, argument, constant, is_given
from glassgrad.doctor.reading.rule import Spot, reads, rules_of, shown, spot
from glassgrad.doctor.reading.values import layer, library_name, losses

_HELD_OUT = re.compile(r"(^|_)(val|valid|validation|test|eval|dev|held)(_|\d|$|set|loader|data|ds|dl)", re.IGNORECASE)
_TRAIN = re.compile(r"(^|_)(train|training)(_|\d|$|set|loader|data|ds|dl)", re.IGNORECASE)
_LABELS = re.compile(r"label|target|mask|(^|_)y(_|\d|$)", re.IGNORECASE)
_SHUFFLES = frozenset({"random.shuffle", "numpy.random.shuffle"})
_ORDERS = frozenset({"torch.randperm", "numpy.random.permutation"})


def _loaders(program: Program) -> Iterator[tuple[ast.Call, str]]:
    """Yield the loaders of a script, with the name that each is assigned to."""
    for call in program.calls:
        if library_name(program, call) == "DataLoader":
            yield call, target_text(program.parents.get(call)).removeprefix("self.")


def _data_name(call: ast.Call) -> str:
    return ident(argument(call, "dataset", 0))


@reads("data not shuffled")
def _not_shuffled(program: Program) -> Iterator[Spot]:
    for call, name in _loaders(program):
        named = f"{name} {_data_name(call)}".split()
        trains = any(_TRAIN.search(one) for one in named) and not any(_HELD_OUT.search(one) for one in named)
        ordered = any(is_given(call, one) for one in ("sampler", "batch_sampler", "worker_init_fn"))
        shuffle = argument(call, "shuffle", 2)
        off = shuffle is None or constant(shuffle) is False
        streams = any("Iterable" in base for one in program.classes.values() for base in one.bases)
        known = not ordered and not streams and not is_starred(call)
        if trains and off and known and not _only_peeked_at(program, call, name):
            yield spot(call, loader=name or _data_name(call))


def _only_peeked_at(program: Program, call: ast.Call, name: str) -> bool:
    """Tell whether a script takes only single batches of a loader, by `next(iter(loader))`."""
    scope, begin = program.scope(call), program.statement(call).lineno
    ends = [bound.line for bound in program.bindings(scope, name) if bound.line > begin]
    uses = [
        node
        for node in program.nodes
        if isinstance(node, ast.Name)
        and (node.id, type(node.ctx)) == (name, ast.Load)
        and begin < node.lineno <= min(ends, default=node.lineno)
        and not program.is_parameter(program.scope(node), name)
    ]
    outer = [program.parents.get(node) for node in uses]
    return bool(uses) and all(isinstance(one, ast.Call) and ast.unparse(one.func) == "iter" for one in outer)


def is_starred(call: ast.Call) -> bool:
    """Tell whether a call gives arguments by `*` or `**`."""
    return any(one.arg is None for one in call.keywords) or any(isinstance(one, ast.Starred) for one in call.args)


@reads("examples left out of validation")
def _left_out(program: Program) -> Iterator[Spot]:
    for call, name in _loaders(program):
        named = f"{name} {_data_name(call)}".split()
        if any(_HELD_OUT.search(one) for one in named) and constant(argument(call, "drop_last", 8)) is True:
            yield spot(call, loader=name or _data_name(call))


@reads("validation on the training data")
def _same_data(program: Program) -> Iterator[Spot]:
    for call, name in _loaders(program):
        data = _data_name(call)
        parted = any(is_given(call, one) for one in ("sampler", "batch_sampler"))  # it may take the other examples
        other = _TRAIN.search(data) and not _HELD_OUT.search(data)
        if _HELD_OUT.search(name) and not _TRAIN.search(name) and other and not parted:
            yield spot(call, loader=name, data=data)
    yield from trained_on(program)


@reads("pairs shuffled apart")
def _apart(program: Program) -> Iterator[Spot]:
    yield from _shuffled_alone(program)
    yield from _permuted_alone(program)
    yield from _zipped(program)
    yield from _drawn_apart(program)
    yield from _helped_apart(program)


def _shuffled_alone(program: Program) -> Iterator[Spot]:
    """Find `shuffle(inputs)` and `shuffle(labels)` in a row: two orders."""
    before: ast.Call | None = None
    for node in program.every(ast.stmt):
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or program.names.full(call.func) not in _SHUFFLES or len(call.args) != 1:
            before = None
            continue
        shuffled = [ast.unparse(one.args[0]) for one in (before, call) if one is not None]
        if before is not None and len(set(shuffled)) == 2 and any(map(_LABELS.search, shuffled)):
            yield spot(call, before, what=f"{shown(before)} and {shown(call)} draw two orders")
        before = call


def _helped_apart(program: Program) -> Iterator[Spot]:
    """Find two calls of a function of the script that draws an order, one for the inputs and one for the labels."""
    for name, function in program.functions.items():
        if not any(program.names.full(one.func) in _ORDERS | _SHUFFLES for one in within(function, ast.Call)):
            continue
        calls = [one for one in program.calls_of(name) if len(one.args) == 1 and not one.keywords]
        for first, second in itertools.pairwise(calls):
            given = [ast.unparse(one.args[0]) for one in (first, second)]
            beside = program.parents.get(program.statement(first)) is program.parents.get(program.statement(second))
            labels = [bool(_LABELS.search(one)) for one in given]
            if beside and second.lineno - first.lineno < 3 and labels[0] != labels[1] and given[0] != given[1]:
                yield spot(second, first, what=f"{shown(first)} and {shown(second)} draw two orders")


def _permuted_alone(program: Program) -> Iterator[Spot]:
    """Find `x = x[randperm(n)]`, an order that nothing else can have, where x and y are indexed alike later."""
    for node in program.every(ast.Assign):
        target, value = node.targets[0], node.value
        order = value.slice if isinstance(value, ast.Subscript) else None
        drawn = isinstance(order, ast.Call) and program.names.full(order.func) in _ORDERS
        yield from _left_behind(program, node)
        if (
            drawn
            and isinstance(value, ast.Subscript)
            and isinstance(target, ast.Name)
            and is_name(value.value, target.id)
        ):
            partner = _partner(program, target.id, node.lineno)
            if partner and not _redrawn(program, partner, target.id, node.lineno):
                yield spot(node, what=f"{shown(node)} puts {target.id} in an order that {partner} does not have")


def _left_behind(program: Program, node: ast.Assign) -> Iterator[Spot]:
    """Find `x, y = x[order], y[order]` without u, which is cut at the same places in a call beside x or y."""
    rows = [(one, it) for one, it in zip(elements(node.targets[0]), elements(node.value), strict=False)]
    rows = rows or [(node.targets[0], node.value)]
    names = [one.id for one, it in rows if isinstance(it, ast.Subscript) and is_name(one, ast.unparse(it.value))]
    orders = {
        ast.unparse(it.slice) for _, it in rows if isinstance(it, ast.Subscript) and isinstance(it.slice, ast.Name)
    }
    if len(names) != len(rows) or len(orders) != 1:
        return
    order = next(it.slice for _, it in rows if isinstance(it, ast.Subscript))
    made = flow(program).origin(order)
    around = program.around(node)
    used = {ast.unparse(it.value) for it in within(around, ast.Subscript) if is_name(it.slice, *orders)}
    if not isinstance(made, ast.Call) or not _is_order(program, made):
        return
    other = _partner(program, names[0], node.lineno, used)
    if other and not _redrawn(program, other, names[0], node.lineno):
        yield spot(node, what=f"{shown(node)} puts {' and '.join(names)} in an order that {other} does not have")


def _partner(program: Program, name: str, line: int, known: Collection[str] = ()) -> str:
    """Return the variable that is indexed with the same rows as another in one call, as in f(x[rows], y[rows])."""
    for call in program.calls:
        parts = within(call, ast.Subscript) if call.lineno >= line else []
        indexed = [(one.value.id, ast.unparse(one.slice)) for one in parts if isinstance(one.value, ast.Name)]
        for other, rows in indexed:
            if other not in {name, *known} and (name, rows) in indexed and (not known or ":" in rows):
                return other
    return ""


def _redrawn(program: Program, partner: str, name: str, line: int) -> bool:
    """Tell whether the partner is computed from the permuted variable afterwards."""
    later = [one.statement for one in program.bindings(program.tree, partner) if one.line > line]
    return any(mentions(one, name) for one in later)


def _drawn_apart(program: Program) -> Iterator[Spot]:
    """Find a loss of `model(x[rows])` and `y[others]`, whose rows the script samples independently."""
    for one in losses(program):
        outputs, targets = _rows(program, one.input, 0), _rows(program, one.target, 0)
        if outputs is None or targets is None:
            continue
        drawn = [flow(program).origin(_whole(rows)) for rows in (outputs, targets)]
        calls = [it for it in drawn if isinstance(it, ast.Call)]
        if len(calls) == 2 and calls[0] is not calls[1] and all(_is_order(program, it) for it in calls):
            first, second = (shown(it, 30) for it in calls)
            what = f"the inputs take the rows of {first} in {shown(outputs, 20)}, and the targets those of {second}"
            yield spot(one.call, *calls, program.statement(one.call), what=what)


def _whole(rows: ast.expr) -> ast.expr:
    """Return the whole that `rows` is a slice of: `order` of `order[i : i + n]`."""
    return rows.value if isinstance(rows, ast.Subscript) else rows


def _rows(program: Program, node: ast.expr | None, depth: int) -> ast.expr | None:
    """Return the index of the only indexed variable in a value. Looks through names, models and methods."""
    if depth > 6:
        return None
    if isinstance(node, ast.Name):
        return _rows(program, program.value_of(node), depth + 1)
    if isinstance(node, ast.Subscript):
        plain = isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Name | ast.Subscript | ast.Call)
        return node.slice if plain else None
    if isinstance(node, ast.Call):
        inner = next(iter(node.args), None) if layer(program, node.func) is not None else object_of(node)
        return _rows(program, inner, depth + 1)
    return None


def _is_order(program: Program, call: ast.Call) -> bool:
    full = program.names.full(call.func)
    by_generator = not full and method_of(call) in {"permutation", "choice", "integers"}
    return by_generator or full in _ORDERS | {"torch.randint", "numpy.random.choice", "numpy.random.randint"}


def _zipped(program: Program) -> Iterator[Spot]:
    """Find `zip(inputs, labels)` of two loaders that shuffle each for itself."""
    shuffled = {name for call, name in _loaders(program) if name and constant(argument(call, "shuffle", 2)) is True}
    for call in program.calls_of("zip"):
        names = [ast.unparse(one).removeprefix("self.") for one in call.args]
        mine = [one for one in names if one in shuffled]
        if len(mine) > 1 and sum(bool(_LABELS.search(one)) for one in mine) == 1:
            what = f"{' and '.join(mine)} shuffle each for itself, so pairs of {shown(call)} do not match"
            yield spot(call, what=what)


@reads("workers draw the same numbers")
def _workers(program: Program) -> Iterator[Spot]:
    """Find a generator that a data set keeps, and loaders with workers, each of which gets a copy of it."""
    many = []
    for call, _ in _loaders(program):
        workers = argument(call, "num_workers", 5)
        if workers is not None and constant(workers) != 0 and not is_given(call, "worker_init_fn", 10):
            many.append(call)
    for owner in program.classes.values() if many else ():
        if "__getitem__" not in owner.methods:
            continue
        for attribute, bounds in owner.attributes.items():
            made = bounds[-1].value
            generator = isinstance(made, ast.Call) and program.names.full(made.func) in _GENERATORS
            used = any(of_self(one) and one.attr == attribute for one in ast.walk(owner.methods["__getitem__"]))
            if used and generator and made is not None:
                yield spot(made, many[0], generator=f"self.{attribute}", owner=owner.node.name)


_COPIED = re.compile(r"augment|jitter|oversampl|smote|upsampl|fit_resample|mirror", re.IGNORECASE)
_SPLITS = re.compile(r"(random|train_test|train_val|_)_?split$|^split$", re.IGNORECASE)
_AUGMENTS = re.compile(r"augment|crop|flip|jitter|cutout|cutmix|mixup|distort", re.IGNORECASE)


@reads("augmentation in validation")
def _augmented(program: Program) -> Iterator[Spot]:
    """Find a function that draws random numbers for its examples, called where gradients are switched off."""
    for call in program.calls:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        function = program.functions.get(name)
        if function is None or not _AUGMENTS.search(name) or not call.args or not _is_held_out(program, call):
            continue
        drawn = _drawn_in(program, function)
        fixed = not call.keywords and not any("train" in ast.unparse(one.test) for one in within(function, ast.If))
        if drawn and fixed and not _is_fresh(program, call):
            yield spot(call, drawn[0], text=shown(call))


def _drawn_in(program: Program, node: ast.AST) -> list[ast.Call]:
    """Return the calls in a function or an expression that draw random numbers."""
    return [one for one in within(node, ast.Call) if _draws(program, one)]


def _is_fresh(program: Program, call: ast.Call) -> bool:
    """Tell whether the examples that a call gets are drawn anew where it stands, so that no call repeats them."""
    given = call.args[0]
    bound = program.bound(given)
    block = next((one for one in program.outward(call) if isinstance(one, (ast.With, *FUNCTIONS))), None)
    if bound is not None and bound.value is not None and any(one is block for one in program.outward(bound.statement)):
        given = bound.value
    makers = [one.func.id for one in within(given, ast.Call) if isinstance(one.func, ast.Name)]
    known = [program.functions[one] for one in makers if one in program.functions]
    return any(_drawn_in(program, one) for one in (given, *known))


@reads("augmented before the split")
def _split_late(program: Program) -> Iterator[Spot]:
    """Find `x, y = augment(x, y)` of data that are split at random afterwards."""
    for call in program.calls:
        name = call.func.id if isinstance(call.func, ast.Name) else last(program.names.full(call.func))
        statement = program.statement(call)
        function = program.functions.get(name)
        overlaps = function is not None and has_attribute(function, "unfold")
        if not (overlaps or _COPIED.search(name)) or not isinstance(statement, ast.Assign) or program.loops(call):
            continue
        made = names_in(*statement.targets)
        for other in program.calls:
            ordered = program.names.full(other.func) in _ORDERS and _splits_by_order(program, other)
            splits = (ordered or _SPLITS.search(ast.unparse(other.func))) and other.lineno > call.lineno
            if splits and program.scope(other) is program.scope(call) and made & names_in(*other.args[:2]):
                yield spot(call, other, text=shown(call), split=shown(other, 40))
                break


def _splits_by_order(program: Program, call: ast.Call) -> bool:
    """Tell whether an order that is drawn is cut into a part for training and one for a validation."""
    around = program.around(call)
    stored = [one.id for one in within(around, ast.Name) if isinstance(one.ctx, ast.Store)]
    if not any(map(_TRAIN.search, stored)):
        return False
    later = [one for one in within(around, ast.Assign) if one.lineno >= call.lineno]
    reached: set[str] = set()
    for _ in range(3):  # the order, what it puts in order, and the parts of that
        for one in later:
            if reached & names_in(one.value) or holds(one.value, call):
                reached |= names_in(*one.targets)
    return any(map(_HELD_OUT.search, reached))


def _is_held_out(program: Program, node: ast.AST) -> bool:
    """Tell whether a node stands in a block, or in a function with a decorator, that switches gradients off."""
    return any(re.search(r"no_grad|inference_mode", ast.unparse(one)) for one in program.heads(node))


def _draws(program: Program, call: ast.Call) -> bool:
    full = program.names.full(call.func)
    ours = library_name(program, call) in {"rand", "randn", "randint", "rand_like", "randn_like"}
    return ours or full.startswith(("random.", "numpy.random."))


@reads("statistics of the test set")
def _fitted_on_test(program: Program) -> Iterator[Spot]:
    for call in program.calls_of(".fit_transform"):
        data, fitted = next(iter(call.args), None), object_of(call)
        column = data.value if isinstance(data, ast.Attribute | ast.Subscript) else data
        name = column.id if isinstance(column, ast.Name) else ""
        if fitted is not None and re.search(r"(^|_)(test|val|valid)(_|$)", name, re.IGNORECASE):
            known = "fitted_on_training" if isinstance(fitted, ast.Call) else ast.unparse(fitted)
            yield spot(call, text=shown(call), remedy=f"{known}.transform({shown(data or call)})")
    yield from on_test(program)


# --- random numbers ---

_SEEDS = frozenset({"torch.manual_seed", "numpy.random.seed", "random.seed", "torch.random.manual_seed"})


_GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"})
_OPTIONS = re.compile(r"^(self|opts?|options|args?|cfg|config|hparams|params|settings)$")


@reads("seed set in the loop")
def _seeded(program: Program) -> Iterator[Spot]:
    for call in program.calls:
        generator = ast.unparse(call.func).endswith("Generator().manual_seed")
        known = generator or program.names.full(call.func) in _SEEDS | _GENERATORS
        if not known or not call.args or not _is_fixed(program, call.args[0]):
            continue
        function = program.function(call)
        if function is not None and function.name == "__getitem__":
            yield spot(call, text=shown(call), where="for each example")
        elif any(trains(program, loop) and not makes_model(program, loop) for loop in program.loops(call)):
            yield spot(call, text=shown(call), where="in each round of the loop")


def _is_fixed(program: Program, seed: ast.expr) -> bool:
    """Tell whether a seed is a number, a variable that holds a number, or an option."""
    if isinstance(seed, ast.Attribute) and isinstance(seed.value, ast.Name):
        return bool(_OPTIONS.match(seed.value.id))
    return constant(seed) is not None or constant(program.value_of(seed)) is not None


RULES = rules_of(globals())
