"""Lines of the user's source that assign an attribute or call a function, found in its syntax tree."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator

from glassgrad.base import provenance
from glassgrad.doctor.library import Module
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.reading.nodes import (
    arguments,
    callee_of,
    compares,
    elements,
    has_attribute,
    indices,
    is_name,
    is_negative,
    method_of,
    object_of,
    within,
)

CONSTANT_INITS = named("zeros_ ones_ constant_ fill_ zero_ zeros ones full")
"""Functions that give every weight one value."""
DROPOUTS = named("dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout")
FUNCTIONS = named("F functional nn.functional torch.nn.functional torch gg")
DRAWS = named(
    "normal_ uniform_ trunc_normal_ xavier_normal_ xavier_uniform_ kaiming_normal_ kaiming_uniform_ orthogonal_"
)
"""Functions that draw weights."""
_MADE = named("tensor as_tensor from_numpy array Tensor FloatTensor")
"""Functions that make a tensor of numbers."""
_LOSSES = re.compile(r"cross_entropy|nll_loss|criterion|crit\b|loss|(^|[._])(ce|nll)$", re.IGNORECASE)
"""Names of functions that take class numbers."""
_MODELS = re.compile(r"model|net\b|self$|coder|[A-Z]\w*\(")
CUTS = named("detach item numpy tolist argmax no_grad")


def _first_line(*inside: str) -> Callable[[Callable[[ast.AST], bool]], Callable[[Iterable[str]], str]]:
    """Make a function that returns the first line in files for which the decorated test holds; empty without one.

    With names of functions, only lines inside these count.
    """
    return lambda wanted: lambda files: _first(files, wanted, inside)


def files_of(model: Module, file: str) -> list[str]:
    """Return the user's files that may hold the model: `file` and those of the classes of its modules."""
    found = dict.fromkeys([file])
    for _, module in model.named_modules():
        kind = sys.modules.get(type(module).__module__)
        path = getattr(kind, "__file__", None) or _written_in(type(module))
        if path and not provenance.is_internal(path):
            found.setdefault(path)
    return list(found)


def _written_in(kind: type) -> str:
    made = inspect.unwrap(vars(kind).get("__init__") or vars(kind).get("forward") or len)
    return getattr(getattr(made, "__code__", None), "co_filename", "")


def assigned_to(path: str, files: Iterable[str]) -> str:
    """Return the last line that assigns an attribute of an object, such as "head" or "layers.2"; empty if none does."""
    attribute, *items = path.split(".")
    ends = {f".{attribute}" + "".join(f".{item}" for item in items)}
    ends.add(f".{attribute}" + "".join(f"[{item}]" if item.isdigit() else f".{item}" for item in items))
    ends |= {f"[{path}]"} if path.isdigit() else set()
    return _last(files, lambda node: any(ast.unparse(one).endswith(tuple(ends)) for one in _targets(node)))


def assigning(name: str, files: Iterable[str]) -> str:
    """Return the last line that assigns a variable; empty if none does."""
    return _last(files, lambda node: any(is_name(one, name) for one in _targets(node)))


def calling(names: Collection[str], files: Iterable[str], keyword: str = "") -> str:
    """Return the first line that calls a function with one of these names, with this keyword; empty if none does."""

    def calls(node: ast.AST) -> bool:
        given = {one.arg for one in node.keywords} if isinstance(node, ast.Call) else set()
        return callee_of(node) in names and (not keyword or keyword in given)

    return _first(files, calls)


@_first_line()
def making_constants(node: ast.AST) -> bool:
    """Find the first line that fills parameters with one value."""
    name = callee_of(node)
    if name == "Parameter":
        return any(callee_of(one) in CONSTANT_INITS for one in ast.walk(node))
    return name in CONSTANT_INITS and name.endswith("_")


@_first_line()
def drawing(node: ast.AST) -> bool:
    """Find the first line that draws the weights of a module, or a parameter."""
    if callee_of(node) == "Parameter":
        return any(callee_of(one) in {"randn", "rand", "normal"} for one in ast.walk(node))
    return callee_of(node) in DRAWS


@_first_line()
def freezing(node: ast.AST) -> bool:
    """Find the first line that freezes parameters."""
    if isinstance(node, ast.Call):
        fixed = ast.unparse(node.func).endswith(("Embedding.from_pretrained", "EmbeddingBag.from_pretrained"))
        thawed = any(one.arg == "freeze" for one in node.keywords)
        return callee_of(node) == "requires_grad_" or (fixed and not thawed)
    return any(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in _targets(node))


def calling_method(name: str, files: Iterable[str], above: str = "") -> str:
    """Return the first line that calls a method without arguments, such as "eval"; empty if none does.

    With `above`, a place such as "file.py:12", return the last one above that line, if there is one.
    """
    found = [*_lines(files, lambda node: method_of(node) == name and isinstance(node, ast.Call) and not node.args)]
    file, _, line = above.rpartition(":")
    places = [(one, one.rpartition(":")) for one in found if line]
    before = [one for one, place in places if place[0] == file and int(place[2]) < int(line)]
    return (before[-1:] or found[:1] or [""])[0]


def switching(place: str, mode: str, files: Iterable[str]) -> str:
    """Return the last line that calls the helper around a place with a mode such as "eval"; empty if none does.

    A helper calls both train() and eval(), as `set_mode("eval", models)` does.
    """
    for file in files:
        tree = provenance.tree_of(file)
        name, _, line = place.rpartition(":")
        if tree is None or name != provenance.shorten(file):
            continue
        for node in within(tree, ast.FunctionDef):
            if not node.lineno <= int(line) <= (node.end_lineno or 0):
                continue
            own = {callee_of(one) for one in ast.walk(node)}
            uses = [one for one in within(tree, ast.Call) if callee_of(one) == node.name and {"train", "eval"} <= own]
            wanted = [one for one in uses if any(_says(it, mode) for it in arguments(one))]
            if wanted:
                return f"{name}:{max(one.lineno for one in wanted)}"
    return ""


def _says(node: ast.expr, mode: str) -> bool:
    """Tell whether an argument names a mode: the text of it, or False for "eval"."""
    value = node.value if isinstance(node, ast.Constant) else None
    return (isinstance(value, str) and value.lower().startswith(mode)) or (value is False and mode == "eval")


def masking(files: Iterable[str]) -> str:
    """Return the first line that compares something to make a mask, or fills by one; empty if none does."""

    def masks(node: ast.AST) -> bool:
        names = [ast.unparse(one) for one in _targets(node)]
        compared = isinstance(node, ast.Assign) and within(node.value, ast.Compare)
        return bool(compared) and any("mask" in name or "pad" in name for name in names)

    return _first(files, masks) or _first(files, lambda node: "masked_fill" in callee_of(node))


@_first_line()
def halving(node: ast.AST) -> bool:
    """Find the first line that converts a model to 16 bits."""
    owner = object_of(node)
    name = callee_of(node) if owner is not None and _MODELS.search(ast.unparse(owner)) else ""
    given = " ".join(map(ast.unparse, arguments(node))) if isinstance(node, ast.Call) else ""
    return name in {"half", "bfloat16"} or (name == "to" and re.search("float16|half|dtype", given) is not None)


@_first_line()
def ignoring(node: ast.AST) -> bool:
    """Find the first line that gives a loss an index to ignore, and no number below 0."""
    given = [one.value for one in node.keywords if one.arg == "ignore_index"] if isinstance(node, ast.Call) else []
    return any(not is_negative(one) for one in given)


@_first_line()
def going_through(node: ast.AST) -> bool:
    """Find the first line that goes through the parameters of two models together."""
    given = node.args if isinstance(node, ast.Call) and callee_of(node) == "zip" else []
    return sum(ast.unparse(one).endswith("parameters()") for one in given) == len(given) == 2


def dropping(files: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the lines that call a function of dropout which drops always, and whether they say so themselves."""

    def says(node: ast.AST) -> bool | None:
        if not isinstance(node, ast.Call) or callee_of(node) not in DROPOUTS or len(node.args) > 2:
            return None
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in FUNCTIONS:
            return None  # a module of that name
        told = [one.value for one in node.keywords if one.arg in {"training", None}]
        if not told:
            return False
        return True if isinstance(told[0], ast.Constant) and told[0].value is True else None

    files = list(files)
    if _first(files, lambda node: isinstance(node, ast.Assign) and has_attribute(node.value, "training"), ("forward",)):
        return []  # the probability itself is set by the mode
    found = dict.fromkeys(_lines(files, lambda node: says(node) is False, ("forward",)), False)
    found |= dict.fromkeys(_lines(files, lambda node: says(node) is True, ("forward",)), True)
    return list(found.items())


@_first_line("forward", "__init__")
def cutting(node: ast.AST) -> bool:
    """Find the first line that cuts a value off its history in a function that computes one.

    Calls of `detach`, `item`, `numpy`, `tolist`, `argmax` and `no_grad` within a `forward` or an `__init__` count.
    """
    data = isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load)
    return data or callee_of(node) in CUTS


def cut_terms(place: str, files: Iterable[str], side: int = -1) -> str:
    """Return the line that cuts off a value which the statement at a line ("file.py:12") adds; empty if none does.

    `side` tells which operand of its first sum that is, 0 or 1; -1 if it is unknown.
    """
    for file in files:
        short, statements = provenance.shorten(file), within(provenance.tree_of(file), ast.stmt)
        made: dict[str, ast.Assign | ast.AugAssign] = {}
        for node in statements:
            if isinstance(node, ast.Assign | ast.AugAssign):
                made |= {one.id: node for one in _targets(node) if isinstance(one, ast.Name)}
        for node in (one for one in statements if f"{short}:{one.lineno}" == place):
            sums = [one for one in within(node, ast.BinOp) if isinstance(one.op, ast.Add)]
            added = [one.right if side else one.left for one in sums[:1]] if side >= 0 else []
            waiting, seen = _names(added[0] if added else node), set()
            while waiting:
                name = waiting.pop()
                cause = made.get(name)
                if name in seen or cause is None or cause is node:
                    continue
                seen.add(name)
                if any(callee_of(one) in CUTS | _MADE for one in ast.walk(cause.value)):
                    return f"{short}:{cause.lineno}"
                waiting += _names(cause.value)
    return ""


def cutting_anew(files: Iterable[str], size: int) -> str:
    """Return the first line that reshapes to a shape with a literal number; empty if none does."""

    def cuts(node: ast.AST) -> bool:
        given = node.args if isinstance(node, ast.Call) and callee_of(node) in {"reshape", "view", "resize"} else []
        return any(part.value == size for one in given for part in within(one, ast.Constant))

    return _first(files, cuts)


@_first_line()
def updating(node: ast.AST) -> bool:
    """Find the first line that changes a tensor by its gradient."""
    if isinstance(node, ast.AugAssign | ast.Assign):
        given, targets = ast.unparse(node.value), [ast.unparse(one) for one in _targets(node)]
        return ".grad" in given and not any(one.endswith(".grad") for one in targets)
    written = callee_of(node) in {"sub_", "add_", "copy_", "addcdiv_"}
    return written and isinstance(node, ast.Call) and any(".grad" in ast.unparse(one) for one in node.args)


@_first_line()
def remapping(node: ast.AST) -> bool:
    """Find the first line that replaces values in place, such as `label[label == 1] = 2`."""
    places = [one.slice for one in _targets(node) if isinstance(one, ast.Subscript)]
    return any(compares(one, ast.Eq) for one in places)


def first_is_right(files: Iterable[str]) -> bool:
    """Tell whether the source gives a loss the class 0 for all examples.

    So is it meant where the scores of the right candidate are put in front of those of the others.
    """

    def gives(node: ast.AST) -> bool:
        if not isinstance(node, ast.FunctionDef | ast.Module):
            return False
        inner = [one for one in _own(node) if isinstance(one, ast.Assign | ast.AugAssign | ast.Call)]
        made = {ast.unparse(one.targets[0]) for one in inner if isinstance(one, ast.Assign) and _zeros(one.value)}
        written = [ast.unparse(target) for one in inner if not isinstance(one, ast.Call) for target in _targets(one)]
        written += [ast.unparse(one.func) for one in inner if isinstance(one, ast.Call)]
        kept = {one for one in made if not any(re.match(rf"{re.escape(one)}(\[|\.\w+_$)", text) for text in written)}
        given = [one for one in inner if isinstance(one, ast.Call) and _LOSSES.search(ast.unparse(one.func))]
        rest = [part for one in given for part in arguments(one) if part not in one.args[:1]]
        return any(_zeros(part) or ast.unparse(part) in kept for part in rest)

    return any(gives(node) for file in files for node in within(provenance.tree_of(file), ast.AST))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or a module, without those of the functions inside."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def _zeros(value: ast.expr) -> bool:
    """Tell whether an expression makes whole numbers that are all 0."""
    text = ast.unparse(value)
    made = re.match(r"[\w.]*\b(zeros|zeros_like|new_zeros)\(", text) and re.search(r"long\b|int64|int32", text)
    listed = re.match(r"[\w.]*\b(tensor|LongTensor)\(\[0\] \* ", text)
    filled = re.match(r"[\w.]*\b(full|full_like)\(.*, 0[,)]", text)
    return bool(made or listed or filled)


def between(name: str, above: str, below: str, files: Iterable[str]) -> str:
    """Return the line that calls a method between two others such as "train.py:12"; empty if none does."""
    (file, _, first), (other, _, last) = above.rpartition(":"), below.rpartition(":")
    if file != other or not first.isdigit() or not last.isdigit():
        return ""
    places = [one.rpartition(":") for one in _lines(files, lambda node: callee_of(node) == name)]
    found = [line for place, _, line in places if place == file and int(first) < int(line) < int(last)]
    return f"{file}:{found[0]}" if found else ""


def moving(files: Iterable[str]) -> str:
    """Return the first statement of a loop over the parameters of two models together; empty if there is none."""
    first = going_through(files)
    file, _, line = first.rpartition(":")

    for one in files if first else ():
        for node in within(provenance.tree_of(one), ast.For) if provenance.shorten(one) == file else ():
            if node.iter.lineno <= int(line) <= (node.iter.end_lineno or 0):
                return f"{file}:{node.body[0].lineno}"
    return first


@_first_line()
def setting_rate(node: ast.AST) -> bool:
    """Find the first line that sets the learning rate of a parameter group."""
    return any(ast.unparse(one).endswith("['lr']") for one in _targets(node))


@_first_line("forward")
def slicing(node: ast.AST) -> bool:
    """Find the first line within a `forward` that slices columns."""
    parts = indices(node)[1:] if isinstance(node, ast.Subscript) else []
    return any(isinstance(one, ast.Slice) and (one.lower or one.upper) for one in parts)


def used_in_forward(name: str, files: Iterable[str]) -> tuple[str, str]:
    """Return the last line in `forward` that uses an argument, and the line of its last `return`."""
    for file in files:
        for node in within(provenance.tree_of(file), ast.FunctionDef):
            given = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
            if node.name != "forward" or name not in given:
                continue
            uses = [one.lineno for one in within(node, ast.Name) if one.id == name]
            ends = [one.lineno for one in within(node, ast.Return)]
            short = provenance.shorten(file)
            return f"{short}:{max(uses)}" if uses else "", f"{short}:{max(ends)}" if ends else ""
    return "", ""


def _names(node: ast.AST) -> list[str]:
    return [one.id for one in within(node, ast.Name) if isinstance(one.ctx, ast.Load)]


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from elements(target) or (target,)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target


def _lines(files: Iterable[str], wanted: Callable[[ast.AST], bool], inside: tuple[str, ...] = ()) -> Iterator[str]:
    for file in files:
        tree = provenance.tree_of(file)
        scopes = [one for one in within(tree, ast.FunctionDef) if one.name in inside] if inside else [tree]
        nodes = [one for scope in scopes for one in within(scope, ast.AST)]
        found = [node.lineno for node in nodes if isinstance(node, ast.stmt | ast.expr) and wanted(node)]
        yield from (f"{provenance.shorten(file)}:{line}" for line in sorted(found))


def _first(files: Iterable[str], wanted: Callable[[ast.AST], bool], inside: tuple[str, ...] = ()) -> str:
    return next(_lines(files, wanted, inside), "")


def _last(files: Iterable[str], wanted: Callable[[ast.AST], bool]) -> str:
    return ([*_lines(files, wanted)] or [""])[-1]
