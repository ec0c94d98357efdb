"""The ops of a replayed step of PyTorch's that made numbers which are not finite, each linked to those before it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from glassgrad.doctor import library
from glassgrad.doctor.graphs.graph import canonical
from glassgrad.doctor.library import Tensor

_SAME = {
    "linalg_vector_norm": "norm",
    "linalgvectornorm": "norm",
    "logsoftmax": "log_softmax",
    "masked_fill_": "masked_fill",
}


@dataclass(eq=False)
class Event:
    """An op that returned or wrote bad numbers.

    Attributes:
        op: its common name.
        is_nan: whether there is a NaN among the bad numbers.
        before: the events behind its bad operands; `held` tells whether another operand was bad, "NaN", "inf" or "".
        what: the description, empty if NaN came in. `site` is the user's line, `values` the operands at the first
            bad place.
        phase: of the step.
        module: whether a module ran it.
        number: of the autograd node that records it, or in the backward pass whose rule it belongs to.
        trap: whether a cotangent of 0 met an infinite slope.
    """

    op: str
    is_nan: bool
    before: list[Event] = field(default_factory=list)
    held: str = ""
    what: str = ""
    site: str = ""
    values: tuple[float, ...] = ()
    phase: str = ""
    module: bool = False
    number: int = -1
    trap: bool = False

    @property
    def is_birth(self) -> bool:
        """Whether all operands were finite."""
        return not self.before and not self.held


def origin(event: Event) -> tuple[Event, Event | None] | None:
    """Return the event at which bad numbers arose, and the one that made a NaN of its infinity; None for bad data."""
    turned: Event | None = None
    while event.before:
        before = max(event.before, key=lambda one: one.is_nan)  # the first of several
        if event.is_nan and not before.is_nan and turned is None:
            turned = event
        event = before
    if event.held == "NaN":
        return None
    if event.held and turned is not None:
        return turned, None  # the infinity stands in the program
    return event, turned


class Events:
    """The latest event of each piece of memory; bad tensors are kept, so that their memory is not used again."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._latest: dict[int, Event] = {}
        self._kept: list[Tensor] = []

    def of(self, tensor: Tensor) -> Event | None:
        """Return the event that made the bad numbers of a tensor."""
        return self._latest.get(memory(tensor))

    def behind(self, given: list[Tensor], written: list[Tensor]) -> tuple[list[Event], str]:
        """Return the events of bad operands, and the kind of other bad operands."""
        before: list[Event] = []
        held = ""
        for one in given:
            if isinstance(one, float):
                held = held or ("" if math.isfinite(one) else "NaN" if math.isnan(one) else "inf")
            elif (event := self.of(one)) is not None and is_bad(one):
                before.append(event)
            elif not any(one is other for other in written) and is_bad(one):
                held = "NaN" if is_bad(one, inf=False) or held == "NaN" else "inf"
        return before, held

    def forward(self, number: int) -> Event | None:
        """Return the event of the forward op that an autograd node records."""
        known = (one for one in self.all if one.phase == "forward pass" and one.number == number)
        return next(known, None)

    def add(self, event: Event, results: list[Tensor]) -> None:
        """Record an event with its bad results."""
        self.all.append(event)
        self._kept += results
        for one in results:
            self._latest[memory(one)] = event


def memory(tensor: Tensor) -> int:
    """Return the address of a tensor's memory, which its views and its copies on the tape share."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):  # a sparse tensor
        return id(tensor)


def is_bad(tensor: Tensor, inf: bool = True) -> bool:
    """Tell whether a tensor holds a NaN, or with `inf` an infinity."""
    if not library.is_torch(tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    return bool((~tensor.isfinite()).any() if inf else tensor.isnan().any())


def common(name: str) -> str:
    """Return the common name of an op of PyTorch's, or of a node of its graph."""
    name = canonical(name)
    return _SAME.get(name, name)


def leaves(value: Tensor, numbers: bool = False) -> Iterator[Tensor]:
    """Yield the tensors in arguments or results, with `numbers` their floats as well."""
    if library.is_torch(value) or (numbers and isinstance(value, float)):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from leaves(part, numbers)
    elif isinstance(value, dict):
        yield from leaves(list(value.values()), numbers)


def elements(args: Tensor, index: tuple[int, ...], shape: Tensor, numbers: bool) -> tuple[float, ...]:
    """Return the elements of the operands that were broadcast to a shape, with `numbers` also numbers."""
    found = []
    for one in args:
        if library.is_torch(one):
            try:
                value = one.detach().broadcast_to(shape)[index]
            except RuntimeError:
                continue
            found.append(float(value.real if value.is_complex() else value))
        elif numbers and isinstance(one, int | float) and not isinstance(one, bool):
            found.append(float(one))
    return tuple(found)
