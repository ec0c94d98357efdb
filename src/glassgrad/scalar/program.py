"""A traced function of Values as data: a flat list of instructions, the input of both emitters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassgrad.scalar import Value

Row = list[float | list[float]]  # one sample: a number or a list of numbers per argument


@dataclass(frozen=True)
class Instruction:
    """One step: an op of `glassgrad.scalar` on earlier steps, or a source of numbers.

    Sources are "input" (`number` is its column), "leaf" (its place among the leaves) and "constant".
    `varying` tells whether the result differs from sample to sample, `active` whether a gradient
    flows through it to a leaf.
    """

    op: str
    args: tuple[int, ...]
    number: float
    varying: bool
    active: bool


@dataclass(frozen=True)
class Program:
    """Instructions in order of execution; the last one is the result. `leaves` are the captured Values."""

    instructions: list[Instruction]
    leaves: list[Value]
    columns: int
