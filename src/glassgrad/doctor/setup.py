"""Facts about a model and its optimizers together, before the first step."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from glassgrad.base import provenance
from glassgrad.base.provenance import pytorch
from glassgrad.doctor import library
from glassgrad.doctor.library import Module, Optimizer
from glassgrad.doctor.run import Setup

STOCHASTIC = ("Dropout", "BatchNorm", "AlphaDropout")
"""Prefixes of the names of classes that behave differently in training."""


def setup_of(model: Module, optimizers: Sequence[Optimizer], frame: FrameType | None = None) -> Setup:
    """Return these facts; `frame` is the user's frame, which holds model and optimizers as variables."""
    built = "" if frame is None else str(provenance.resolve(frame.f_code, frame.f_lasti))
    made = assigned(frame, model) or built
    named = list(model.named_parameters())
    mine = {id(parameter) for _, parameter in named}
    held = {id(parameter) for optimizer in optimizers for parameter in _held(optimizer)}
    return Setup(
        optimizers=tuple((type(one).__name__, options_of(one) | _decay_of(one)) for one in optimizers),
        not_given=tuple(
            name
            for name, parameter in named
            if optimizers and library.trainable(parameter) and id(parameter) not in held
        ),
        foreign=len(held - mine),
        given=len(held & mine),
        shared=tuple(_shared(model)),
        unseeded=tuple(unseeded(model, made)),
        stochastic=tuple(name for name, _ in stochastic(model)),
        frozen=tuple(name for name, parameter in named if not library.trainable(parameter)),
        built=assigned(frame, optimizers[0] if optimizers else model) or built,
    )


def assigned(frame: FrameType | None, value: Any) -> str:
    """Return the line that assigned a variable of a frame, empty if unknown."""
    if frame is None:
        return ""
    names = {name for name, held in (*frame.f_locals.items(), *frame.f_globals.items()) if held is value}
    file = frame.f_code.co_filename
    tree = provenance.tree_of(file)
    if tree is None:
        return ""
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(target))
    ]
    before = [line for line in found if line <= frame.f_lineno]
    return f"{provenance.shorten(file)}:{max(before)}" if before else ""


def options_of(optimizer: Optimizer) -> dict[str, Any]:
    """Return the options of an optimizer's first group, or the numeric attributes of a hand-written one."""
    groups = getattr(optimizer, "param_groups", None)
    source = groups[0] if groups else vars(optimizer)
    return {name: value for name, value in source.items() if isinstance(value, int | float | tuple)}


def _decay_of(optimizer: Optimizer) -> dict[str, float]:
    """Return the largest weight decay of an optimizer's groups."""
    decays = [group.get("weight_decay", 0.0) for group in getattr(optimizer, "param_groups", ())]
    known = [float(one) for one in decays if isinstance(one, int | float)]
    return {"weight_decay": max(known)} if any(known) else {}


def _held(optimizer: Optimizer) -> Iterator[Any]:
    groups = getattr(optimizer, "param_groups", None)
    if groups is None:  # hand-written
        yield from getattr(optimizer, "parameters", ())
        return
    for group in groups:
        yield from group["params"]


def stochastic(model: Module) -> Iterator[tuple[str, Module]]:
    """Yield the modules that behave differently in training and evaluation."""
    for name, module in model.named_modules() if hasattr(model, "named_modules") else ():
        kind = type(module).__name__
        if kind.startswith(STOCHASTIC) and not (kind.startswith("Dropout") and not getattr(module, "p", 1)):
            yield name, module


def _shared(model: Module) -> Iterator[str]:
    """For each module with parameters that occurs more than once in one list of layers, say where."""
    for path, module in model.named_modules() if hasattr(model, "named_modules") else ():
        if type(module).__name__ not in {"Sequential", "ModuleList"}:
            continue
        seen: dict[int, list[str]] = {}
        # named_children() yields each module once, but duplicates are wanted here.
        children = getattr(module, "_modules", {})
        for name, child in children.items():
            if child is None or not any(True for _ in child.parameters()):
                continue
            seen.setdefault(id(child), []).append(f"{path}.{name}" if path else name)
        for first, *others in seen.values():
            if others:
                *most, last = others
                yield f"layers {', '.join(most)} and {last} are {first}" if most else f"layer {last} is {first}"


# --- random numbers ---


def unseeded(model: Module, built: str) -> Iterator[tuple[str, str]]:
    """Yield the generators that were used without a seed, with the user's line."""
    torch = pytorch()
    if library.is_torch(model) and torch is not None:
        # PyTorch's default seed has 53 bits from the system; people choose smaller numbers.
        if torch.initial_seed() >= 1 << 32:
            yield "PyTorch's", built
    else:
        ours = sys.modules.get("glassgrad.engine.random")
        if ours is not None and ours.default_generator.unseeded is not None:
            yield "glassgrad's", str(provenance.resolve(*ours.default_generator.unseeded))
    if _numpy_unseeded():
        yield "NumPy's", built


def _numpy_unseeded() -> bool:
    """Tell whether NumPy's global generator was used with its default seed."""
    module = sys.modules.get("numpy.random")
    if module is None:
        return False
    bits = module.mtrand._rand._bit_generator
    sequence = getattr(bits, "_seed_seq", None)  # None after a call of seed()
    if sequence is None or type(bits).__name__ != "MT19937":
        return False
    fresh = type(bits)(sequence).state["state"]
    now = bits.state["state"]
    return bool(fresh["pos"] != now["pos"] or (fresh["key"] != now["key"]).any())
