"""Infer the modules of a tensor's history, which the tape does not record, from the parameters that its ops read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from glassgrad.base.drawing.graph import Path, common
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array

_UNCALLED = frozenset({"ModuleList", "ModuleDict"})


def gathered(modules: Sequence[tuple[str, Any]], nodes: Sequence[Any]) -> tuple[dict[Any, Path], dict[Path, str]]:
    """Return the module that each op belongs to, and the class of each module, both empty where that is not clear.

    An op that reads a parameter belongs to the module that owns it. Any other op belongs to the innermost module that
    contains both its inputs and its readers. A parameter that several ops read is no evidence: its module may have been
    called several times. Neither is a module that the computation leaves and enters again.

    Args:
        modules: the outermost modules with their names.
        nodes: nodes of the tape, oldest first.
    """
    owners, kinds = _owners(modules)
    direct: dict[Any, Path] = {}
    seen: set[int] = set()
    for node in nodes:
        for leaf in {id(parent): parent for parent in node.parents if isinstance(parent, Tensor)}.values():
            if id(leaf) in seen:
                return {}, {}
            if id(leaf) in owners:
                seen.add(id(leaf))
                direct[node] = common([direct.get(node, owners[id(leaf)]), owners[id(leaf)]])
    readers: dict[Any, list[Any]] = {}
    for node in nodes:
        for parent in node.parents:
            readers.setdefault(maker(parent), []).append(node)
    behind: dict[Any, Path] = {}
    before: dict[Array, Path] = {}
    for node in nodes:
        makers = [behind[made] for parent in node.parents if (made := maker(parent)) in behind]
        behind[node] = direct.get(node, common(makers) if makers else ())
    for node in reversed(nodes):
        users = [before[reader] for reader in readers.get(node, ()) if reader in before]
        before[node] = direct.get(node, common(users) if users else ())
    found = {node: direct.get(node, common([behind[node], before[node]])) for node in nodes}
    paths = {path[:length] for path in found.values() for length in range(1, len(path) + 1)}
    if any(_leaves_and_enters(path, found, readers, nodes) for path in paths):
        return {}, {}
    return found, {path: kinds.get(path, "") for path in paths}


def _owners(modules: Sequence[tuple[str, Any]]) -> tuple[dict[int, Path], dict[Path, str]]:
    """Return the path of the module that owns each parameter, by id, and the class of each module by path."""
    owners: dict[int, Path] = {}
    kinds: dict[Path, str] = {}
    for outer, module in modules:
        called: dict[str, Path] = {}
        for name, inner in module.named_modules():
            above, _, last = name.rpartition(".")
            path, rest = (called[above], last) if name else ((), outer)
            if path and path[-1].endswith("."):  # inside a list of modules, which is never called itself
                path, rest = path[:-1], path[-1] + rest
            kind = type(inner).__name__
            path = (*path, rest + ("." if kind in _UNCALLED else "")) if rest else path
            called[name] = path
            kinds[path] = kind
            for _, parameter in inner.named_parameters(recurse=False):
                owners.setdefault(id(parameter), path)
    return owners, kinds


def _leaves_and_enters(path: Path, found: Mapping[Any, Path], readers: Mapping[Any, Iterable[Any]], nodes: Any) -> bool:
    """Tell whether a value leaves a module and comes back, so that the module cannot be one box."""
    outside: set[Any] = set()
    for node in nodes:
        inside = found[node][: len(path)] == path
        if inside and node in outside:
            return True
        if inside or node in outside:
            outside.update(one for one in readers.get(node, ()) if not inside or found[one][: len(path)] != path)
    return False


def maker(parent: Any) -> Any:
    """Return the node that made a value; for one of several results of an op, the op."""
    while type(parent) is Node and parent.prim.name == "pick":
        parent = parent.parents[0]
    return parent


__all__ = ["gathered", "maker"]
