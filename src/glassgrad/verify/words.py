"""Translate PyTorch's names in a derivation into ours: module, functions and tensors."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from glassgrad.base.provenance import pytorch
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array

_SPOKEN = ("torch", "F", "nn")


class _Torch:
    """A stand-in for PyTorch's module, in which its names are looked up."""

    def __getattr__(self, name: str) -> Any:
        from glassgrad import nn
        from glassgrad.engine import public

        if name == "nn":
            return nn
        return getattr(public, name, None) or (lambda tensor, *args, **given: getattr(tensor, name)(*args, **given))


TORCH = _Torch()


def words() -> dict[str, Any]:
    """Return the meaning of PyTorch's usual names."""
    from glassgrad import nn
    from glassgrad.nn import functional

    return {"torch": TORCH, "F": functional, "nn": nn}


def of_import(node: ast.stmt) -> dict[str, Any] | None:
    """Return the names that an import of PyTorch binds; None for any other statement."""
    known = words()
    homes = {"torch": known["torch"], "torch.nn": known["nn"], "torch.nn.functional": known["F"]}
    if isinstance(node, ast.Import) and all(alias.name.partition(".")[0] == "torch" for alias in node.names):
        return {
            alias.asname or "torch": homes.get(alias.name, TORCH) if alias.asname else TORCH for alias in node.names
        }
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
        home = homes.get(node.module or "", TORCH)
        return {alias.asname or alias.name: _part(home, node.module or "", alias.name) for alias in node.names}
    return None


def _part(home: Any, module: str, name: str) -> Any:
    return words()["F"] if (module, name) == ("torch.nn", "functional") else getattr(home, name)


def spoken(nodes: Iterable[ast.AST]) -> bool:
    """Tell whether statements name PyTorch's module, or its functions as `F`."""
    return any(isinstance(part, ast.Name) and part.id in _SPOKEN for node in nodes for part in ast.walk(node))


def translated(names: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """Replace PyTorch's modules and tensors among the names by ours, if they are used."""
    torch = pytorch()
    if torch is None:
        return dict(names)
    known = words()
    ours = {id(torch): known["torch"], id(torch.nn): known["nn"], id(torch.nn.functional): known["F"]}
    found = dict(names)
    for name in used:
        if name in found:
            found[name] = array_of(ours.get(id(found[name]), found[name]))
    return found


def array_of(value: object) -> Array:
    """Return a tensor of PyTorch as an array, and anything else unchanged."""
    torch = pytorch()
    if torch is not None and isinstance(value, torch.Tensor):
        return np.array(value.detach().cpu().numpy())
    return value


def speaking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version of a function that uses our modules instead of PyTorch's; itself if it names none."""
    code = getattr(function, "__code__", None)
    space = getattr(function, "__globals__", {})
    if code is None or pytorch() is None:
        return function
    closed: tuple[Any, ...] = getattr(function, "__closure__", None) or ()
    around = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closed, strict=True)}
    own, inside = translated(space, code.co_names), translated(around, around)
    changed = {name for name in code.co_names if own.get(name) is not space.get(name)}
    closer = {name for name in around if inside[name] is not around[name]}
    if not changed and not closer:
        return function
    own |= {name: _tensor(own[name]) for name in changed}
    cells = tuple(
        types.CellType(_tensor(inside[name])) if name in closer else cell
        for name, cell in zip(code.co_freevars, closed, strict=True)
    )
    made = types.FunctionType(code, own, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _tensor(value: object) -> Array:
    return Tensor(value) if isinstance(value, np.ndarray) else value
