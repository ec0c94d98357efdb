"""Find parameters behind a loss that no module of the model and no optimizer has, and the names of their holders."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from glassgrad.base import provenance
from glassgrad.doctor import library
from glassgrad.doctor.graphs.graph import MOST
from glassgrad.doctor.library import Module, Optimizer, Tensor
from glassgrad.doctor.parts import Outside
from glassgrad.doctor.source_lines import assigned_to, assigning, files_of

Held = Any
"""What an attribute or a variable holds."""

_DEEPEST = 3
_COPIES = re.compile(r"target|teacher|ema(_|$)|shadow|frozen|fixed|old", re.IGNORECASE)
"""Names of models that another way than an optimizer updates, or that stay as they are."""


def leaves(loss: Tensor, *, all_of_them: bool = False) -> list[Tensor]:
    """Return the parameters that a loss depends on, in any order; empty if its history is too long.

    With `all_of_them`, also return the tensors that require gradients but are not parameters.
    """
    torch = library.is_torch(loss)
    root = loss.grad_fn if torch else getattr(loss, "node", None)
    seen, waiting, found = {id(root)}, [root] if root is not None else [], {}
    kept = [root]  # PyTorch makes its nodes anew, and an id would be used again
    while waiting and len(seen) < MOST:
        node = waiting.pop()
        for one in (pair[0] for pair in node.next_functions) if torch else node.parents:
            if one is None:
                continue
            leaf = getattr(one, "variable", None) if torch else None if hasattr(one, "prim") else one
            if leaf is not None and (all_of_them or type(leaf).__name__ == "Parameter"):
                found[id(leaf)] = leaf
            elif id(one) not in seen and hasattr(one, "next_functions" if torch else "prim"):
                seen.add(id(one))
                kept.append(one)
                waiting.append(one)
    return list(found.values())


_told: list[list[Optimizer]] = []
_made: dict[int, str] = {}


@contextmanager
def told_of_all() -> Iterator[Callable[[Optimizer], None]]:
    """Give a function to call with every optimizer that is made in the block, so that nobody need look for them."""
    _told.append([])

    def tell(optimizer: Optimizer) -> None:
        frame = provenance.user_frame()
        _made[id(optimizer)] = str(provenance.resolve(frame.f_code, frame.f_lasti))
        _told[-1].append(optimizer)

    try:
        yield tell
    finally:
        for one in _told.pop():
            _made.pop(id(one), None)


def told() -> int:
    """Return how many optimizers were made so far; 0 if nobody tells of them."""
    return len(_told[-1]) if _told else 0


def twice_held() -> str:
    """Return the user's lines of two optimizers where the first holds all parameters of the second; else empty."""
    before: list[tuple[set[int], str]] = []
    for one in _told[-1] if _told else ():
        mine = set(map(id, library.trained_by(one)))
        first = next((where for theirs, where in before if mine and mine <= theirs), None)
        if first is not None:
            return " and ".join(dict.fromkeys([first, _made.get(id(one), "")]))
        before.append((mine, _made.get(id(one), "")))
    return ""


def remade(mine: Collection[int]) -> tuple[int, str]:
    """Return how many optimizers one line made for the same parameters, some of them in `mine`, and that line.

    Example:
        >>> remade({1, 2})
        (0, '')
    """
    counts: Counter[tuple[frozenset[int], str]] = Counter()
    for one in _told[-1] if _told else ():
        theirs = frozenset(map(id, library.trained_by(one)))
        if theirs & set(mine):
            counts[theirs, _made.get(id(one), "")] += 1
    if not counts:
        return 0, ""
    ((_, where), count), *_ = counts.most_common(1)
    return count, where


def held_by_optimizers(torch: bool) -> set[int]:
    """Return the ids of the parameters of all optimizers that are alive."""
    if _told:
        optimizers = _told[-1]
    else:
        module = sys.modules.get("torch.optim.optimizer" if torch else "glassgrad.optim.optimizer")
        kinds = () if module is None else (module.Optimizer,)
        optimizers = list(library.alive(*kinds))  # a tuple cannot grow while a search through all objects sees it
    return set(map(id, library.trained_by(*optimizers)))


def outside(model: Module, strays: list[Tensor], frame: FrameType) -> Iterator[Outside]:
    """Yield the holders of parameters that nobody trains; `frame` is the user's, which holds variables."""
    missing = {id(one): one for one in strays}
    for path, module in model.named_modules():
        for attribute, value in vars(module).items():
            registry = attribute.startswith("_") and isinstance(value, dict | set)  # of the module's own
            if not registry and isinstance(value, list | tuple | dict | set):
                yield from _taken(missing, model, path, attribute, value, module, frame)
    if not missing:
        return
    file = frame.f_code.co_filename
    for name, value in _variables(frame):
        mine = [one for one in _parameters(value) if id(one) in missing]
        if mine and getattr(value, "training", True) and not name.startswith("_") and not _COPIES.search(name):
            for one in mine:
                del missing[id(one)]
            kind = "module" if hasattr(value, "named_modules") else "parameter"
            kind = type(value).__name__ if isinstance(value, list | tuple | dict | set) else kind
            where = assigned_to(name.removeprefix("self."), [file]) if "." in name else assigning(name, [file])
            yield Outside(name, f"variable {kind}", _count(mine), where, twice_held())


def _variables(frame: FrameType) -> Iterator[tuple[str, Held]]:
    """Yield the user's variables, and the attributes of the object whose method runs, such as those of a trainer."""
    yield from {**frame.f_globals, **frame.f_locals}.items()
    owner = frame.f_locals.get("self")
    if owner is not None and not hasattr(type(owner), "named_parameters"):
        yield from ((f"self.{name}", value) for name, value in getattr(owner, "__dict__", {}).items())


def _taken(
    missing: dict[int, Tensor], model: Module, path: str, attribute: str, value: Held, module: Module, frame: FrameType
) -> Iterator[Outside]:
    mine = [one for one in _parameters(value) if id(one) in missing]
    for one in mine:
        del missing[id(one)]
    if mine:
        owner = f"{type(model).__name__}.{path}" if path else type(model).__name__
        files = files_of(module, frame.f_code.co_filename)
        where = assigned_to(attribute, files)
        yield Outside(f"{owner}.{attribute}", type(value).__name__, _count(mine), where)


def _parameters(value: Held, depth: int = 0) -> Iterator[Tensor]:
    """Yield the parameters in a module, a parameter or nested containers of them."""
    if type(value).__name__ == "Parameter":
        yield value
    elif isinstance(value, list | tuple | set | Mapping) and depth < _DEEPEST:
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _parameters(one, depth + 1)
    elif hasattr(type(value), "named_parameters") and not isinstance(value, type):
        yield from dict.fromkeys(value.parameters())


def _count(parameters: list[Tensor]) -> int:
    return sum(int(library.values(one).size) for one in parameters)


def where_put(model: Module, parameter: str, frame: FrameType | None) -> str:
    """Return the user's line that put the module of a parameter there."""
    if frame is None:
        return ""
    files = files_of(model, frame.f_code.co_filename)
    parts = parameter.split(".")
    found = (assigned_to(".".join(parts[:at]), [files[0]]) for at in range(len(parts), 0, -1))
    return next((line for line in found if line), "")
