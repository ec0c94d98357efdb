"""Sample calls of every primitive in the registry, for the generic tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import glassgrad as gg  # noqa: F401 - importing it fills the registry
import glassgrad.engine.public  # noqa: F401 - fills the table, which is empty after `import glassgrad`
from glassgrad.ops.core import REGISTRY, Elementwise, Primitive

# Shapes per number of arguments: equal, broadcast in every position, scalars, empty.
SHAPES: dict[int, tuple[tuple[tuple[int, ...], ...], ...]] = {
    1: (((3, 4),), ((),), ((0, 3),)),
    2: (((3, 4), (3, 4)), ((3, 1), (4,)), ((4,), (3, 1)), ((), (2, 3)), ((1, 1), (1,)), ((0, 3), (3,))),
    3: (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), (1, 4)), ((), (2, 3), ()), ((4,), (3, 1), (3, 4))),
}


@dataclass(frozen=True)
class Case:
    """One call: the primitive, which sample, and how to draw its arguments."""

    prim: Primitive
    number: int

    @property
    def id(self) -> str:
        return f"{self.prim.name}-{self.number}"

    def carrying(self, y: Any) -> tuple[Any, ...]:
        """Return the results that carry a derivative, without the companions of a fused primitive."""
        results = y if isinstance(y, tuple) else (y,)
        return results[: len(results) - self.prim.companions]

    def draw(self, seed: int = 0, dtype: Any = np.float64) -> tuple[list[np.ndarray[Any, Any]], dict[str, Any]]:
        """Return fresh arguments and the static parameters."""
        rng = np.random.default_rng([seed, self.number])
        if isinstance(self.prim, Elementwise):
            shapes = SHAPES[self.prim.arity][self.number]
            domains = self.prim.samples
            return [d.draw(rng, s, dtype) for d, s in zip(domains, shapes, strict=True)], params_of(self.prim)
        sample = self.prim.samples[self.number]
        return sample.draw(rng, dtype), dict(sample.params)


def params_of(prim: Primitive) -> dict[str, Any]:
    """Return static parameters for an elementwise primitive that has some."""
    return dict(prim.sample_params)


def cases(*, differentiable: bool = True) -> Iterator[Case]:
    """Yield every sample call of every primitive that has samples."""
    for prim in REGISTRY.values():
        if not prim.samples or (differentiable and not prim.differentiable):
            continue
        count = len(SHAPES[prim.arity]) if isinstance(prim, Elementwise) else len(prim.samples)
        for number in range(count):
            yield Case(prim, number)


def is_float(x: Any) -> bool:
    """Tell whether an argument can have a gradient."""
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def differentiable_positions(prim: Primitive, args: list[Any]) -> list[int]:
    """Return the positions of the arguments that the primitive has a rule for."""
    return [
        position
        for position, x in enumerate(args)
        if is_float(x) and (prim.vjps is None or prim.vjps[position] is not None)
    ]
