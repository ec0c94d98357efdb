"""The settings of the modules of a model: running statistics, dropouts, and tensors that are not parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

from glassgrad.doctor import library, source_lines
from glassgrad.doctor.library import Module, Tensor
from glassgrad.doctor.parts import Outside, Statistics

LEAST = 20
"""The number of steps after which running statistics should have converged."""
LATE, LATEST = 0.5, 0.9
"""The smallest convergence of statistics in a healthy run; the momentum above which only the last batch counts."""
_EMPTIED = 0.85
"""The probability of dropout above which almost nothing passes."""
_DEEPEST = 2


def statistics(model: Module, steps: int, files: list[str]) -> Iterator[Statistics]:
    """Yield the normalisations whose running statistics have not converged, or describe only the last batch."""
    for name, module in model.named_modules():
        momentum = getattr(module, "momentum", None)
        mean = library.numbers(getattr(module, "running_mean", None))
        if mean is None or not isinstance(momentum, int | float) or steps < LEAST:
            continue
        counted = library.number(getattr(module, "num_batches_tracked", None)) or 0.0
        arrived = 1 - (1 - momentum) ** counted if 0 <= momentum <= 1 else math.nan
        if counted >= LEAST and (arrived < LATE or momentum >= LATEST):
            where = source_lines.calling({type(module).__name__}, files, "momentum")
            yield Statistics(name, float(momentum), arrived, where)


def pretending(model: Module, files: list[str]) -> tuple[tuple[str, ...], str]:
    """Return the modules with an attribute `requires_grad`, which has no effect, and the line that sets one."""
    found = tuple(name for name, module in model.named_modules() if vars(module).get("requires_grad") is False)
    return found, source_lines.assigned_to("requires_grad", files) if found else ""


def dropouts(model: Module, files: list[str]) -> Iterator[tuple[str, float, str]]:
    """Yield the dropouts that drop almost everything, with their probabilities and lines."""
    for name, module in model.named_modules():
        kind, share = type(module).__name__, getattr(module, "p", 0.0)
        if "Dropout" in kind and isinstance(share, int | float) and share >= _EMPTIED:
            yield name, float(share), source_lines.calling({kind}, files)


def loose(model: Module, held: Collection[int], files: list[str]) -> Iterator[Outside]:
    """Yield attributes of modules that hold tensors with gradients which are neither parameters nor in an optimizer.

    Args:
        model: before training begins, so that it holds no state of an earlier pass.
        held: the ids of the model's parameters and of the tensors of the optimizers.
        files: the user's files that may define the model.
    """
    for path, module in model.named_modules() if hasattr(model, "named_modules") else ():
        for attribute, value in list(vars(module).items()):
            if attribute.startswith("_") and isinstance(value, dict | set):
                continue  # a registry of the module's own
            mine = [one for one in _tensors(value) if id(one) not in held]
            if mine and not _is_made_of(module, attribute):
                owner = f"{type(model).__name__}.{path}" if path else type(model).__name__
                count = sum(int(math.prod(one.shape)) for one in mine)
                kind = type(value).__name__ if isinstance(value, list | tuple | dict | set) else "tensor"
                yield Outside(f"{owner}.{attribute}", kind, count, source_lines.assigned_to(attribute, files))


def _tensors(value: object, depth: int = 0) -> Iterator[Tensor]:
    """Yield the tensors in a value or in nested containers that require gradients but are not parameters."""
    if isinstance(value, list | tuple | set | Mapping) and depth < _DEEPEST:
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(one, depth + 1)
    elif library.is_tensor(value) and getattr(value, "requires_grad", False) and not _is_parameter(value):
        yield value


def _is_made_of(module: Module, attribute: str) -> bool:
    """Tell whether a layer computes an attribute from its parameters before each pass, as weight normalisation does."""
    return any(name.startswith(f"{attribute}_") for name, _ in module.named_parameters(recurse=False))


def _is_parameter(value: object) -> bool:
    return "Parameter" in type(value).__name__
