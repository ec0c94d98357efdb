"""The observations of a training run as plain data, the input of the rules about runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor.facts import Facts
from glassgrad.doctor.graphs.graph import UNKNOWN, Graph, Labels
from glassgrad.doctor.library import Array
from glassgrad.doctor.observers.dead_units import Dead
from glassgrad.doctor.parts import Parts, Score
from glassgrad.doctor.quantities.directions import noise_scale
from glassgrad.doctor.record import MonitorData

Site = tuple[CodeType, int]
_DEEPEST = 16
"""The number of calls of the user's functions in each other that are noted."""


def here() -> Site:
    """Return the user's line that is being executed."""
    frame = provenance.user_frame()
    return frame.f_code, frame.f_lasti


def line_of(site: Site | None) -> str:
    """Return a place as "file.py:12"; empty for None."""
    return "" if site is None else str(provenance.resolve(*site))


def _trail() -> tuple[Site, ...]:
    """Return the user's lines that are being executed: the innermost first, then those that called it."""
    frame: FrameType | None = provenance.user_frame()
    found: list[Site] = []
    while frame is not None and len(found) < _DEEPEST:
        if not provenance.is_internal(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


@dataclass
class Calls:
    """The order of the calls in a training loop. "Step" means a step of the optimizer.

    Attributes:
        steps, backwards: the numbers of optimizer steps and backward passes.
        sequence: the first calls, one letter each: F forward, B backward, S step.
        sites: for "forward", "backward" and "step", the user's line of the first such call.
        trails: for these and "held", that line and those of the calls that led there, the innermost first.
        leftovers: (step, norm) of gradients that an earlier step had used and that were not zeroed.
        looked_for_leftovers: the number of steps that were checked for leftovers.
        empty: the steps in which no parameter had a gradient.
        detached: (step, site) of backward passes from a loss without a history.
        evaluating: (step, names) of modules that were in evaluation mode in a step.
        training: (step, site) of calls without gradients though the model was in training mode.
        failure: the error that the loop raised, in words.
        hidden: whether steps were taken but none was reported.
        lines: the user's lines that do the work of a call, such as a "step" in a loop that changes its tensors itself.
        followed: whether the program made another optimizer of the model after the first steps; it is not watched.
        later: the ids of the parameters of the optimizers that were made after this watch began.
    """

    steps: int = 0
    backwards: int = 0
    sequence: str = ""
    sites: dict[str, Site] = field(default_factory=dict)
    trails: dict[str, tuple[Site, ...]] = field(default_factory=dict)
    leftovers: list[tuple[int, float]] = field(default_factory=list)
    looked_for_leftovers: int = 0
    empty: list[int] = field(default_factory=list)
    detached: list[tuple[int, Site]] = field(default_factory=list)
    evaluating: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    training: list[tuple[int, Site]] = field(default_factory=list)
    failure: str = ""
    hidden: bool = False
    lines: dict[str, str] = field(default_factory=dict)
    followed: bool = False
    later: set[int] = field(default_factory=set)

    def note(self, call: str) -> None:
        """Record the user's line, and those that led there, of the first such call."""
        if call not in self.sites:
            self.trails[call] = _trail()
            self.sites[call] = self.trails[call][0]

    def line(self, call: str) -> str:
        """Return the user's line of the first "forward", "backward" or "step"."""
        return self.lines.get(call) or line_of(self.sites.get(call))


@dataclass(frozen=True)
class Setup:
    """How a model and its optimizers fit together, and how the random generators are seeded.

    Attributes:
        optimizers: (class, options of the first group) of each.
        not_given: trainable parameters of the model that no optimizer updates.
        elsewhere: trainable parameters that another optimizer has updated or will update.
        loaded: trainable parameters that no optimizer updates, and that keep the weights which were loaded into them.
        foreign: the number of the optimizers' tensors that are not in the model; `given`: the number of those that are.
        shared: for each module with parameters that occurs more than once in a container, the places: "layer 2 is 0".
        unseeded: (generator, the user's line) of generators without a seed.
        stochastic: names of modules that behave differently in training: dropout, batch normalisation.
        frozen: parameters that require no gradient.
        built: the user's line that began the watch.
    """

    optimizers: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    not_given: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    foreign: int = 0
    given: int = 0
    shared: tuple[str, ...] = ()
    unseeded: tuple[tuple[str, str], ...] = ()
    stochastic: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    built: str = ""

    @property
    def rested(self) -> frozenset[str]:
        """The names of the parameters that this training leaves alone on purpose."""
        return frozenset((*self.elsewhere, *self.loaded, *self.frozen))


@dataclass(frozen=True)
class Run:
    """All observations of a run; unknown values are empty.

    Attributes:
        model: the class of the model.
        data: statistics of the sampled steps.
        losses: (step, loss) of all steps whose loss is known, shape (n, 2); `held_out`: the same for validations.
        calls, setup: the order of the calls, and how the parts fit together.
        graph: the ops of the first sampled step.
        inputs: facts about the inputs of the model, or of the compiled step, in the first sampled step.
        labels: (step, labels) of the sampled steps whose loss takes class numbers.
        dead: by rectifier, the share of its units that were zero for every example of many steps.
        unseen: what was not inspected, and why, in words.
        parts: what the parts of the model do beside their gradients.
        examples: (inputs, class numbers) of sampled steps, at most a few hundred rows each.
        pairs: (inputs, targets) of sampled steps whose loss is a squared error.
        places: (token and the one before it, class numbers) of sampled steps with a class for each place of a sequence.
        scores: how well the outputs of sampled steps fit their targets; `modes`: those of one batch in both modes;
            `validations`: those of passes without gradients, as far as their targets were found, with `held`: (inputs,
            targets) of these.
        sizes: the norms of the parameters as they are now.
        rounded: by parameter of 16 bits, the share of its numbers with a gradient that a step leaves as they are.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 1)
        >>> optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
        >>> with gg.doctor.watch(model, optimizer, report=False) as seen:
        ...     model(gg.ones(4, 2)).square().mean().backward()
        ...     optimizer.step()
        >>> seen.run.model, len(seen.run.losses)
        ('Linear', 1)
    """

    model: str = ""
    data: MonitorData | None = None
    losses: Array = field(default_factory=lambda: np.zeros((0, 2)))
    held_out: Array = field(default_factory=lambda: np.zeros((0, 2)))
    calls: Calls = field(default_factory=Calls)
    setup: Setup = field(default_factory=Setup)
    graph: Graph = UNKNOWN
    inputs: tuple[Facts, ...] = ()
    targets: None = None
    labels: tuple[tuple[int, Any], ...] = ()
    dead: Mapping[str, Dead] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    parts: Parts = field(default_factory=Parts)
    examples: tuple[tuple[Array, Array], ...] = ()
    pairs: tuple[tuple[Array, Array], ...] = ()
    places: tuple[tuple[Array, Array], ...] = ()
    scores: tuple[Score, ...] = ()
    modes: tuple[Score, ...] = ()
    validations: tuple[Score, ...] = ()
    held: tuple[tuple[Array, Array], ...] = ()
    sizes: tuple[float, ...] = ()
    rounded: Mapping[str, float] = field(default_factory=dict)

    @property
    def curve(self) -> Array:
        """The (step, loss) of the steps whose loss is finite."""
        return self.losses[np.isfinite(self.losses[:, 1])]

    @property
    def rates(self) -> Array:
        """The (step, learning rate) of the sampled steps whose rate is known."""
        if self.data is None:
            return np.zeros((0, 2))
        known = np.isfinite(self.data.rate)
        return np.stack([self.data.steps[known], self.data.rate[known]], axis=1)

    @property
    def first_batches(self) -> list[float]:
        """The numbers of examples in the first sampled steps."""
        return [] if self.data is None else self.data.batch[:4].tolist()

    @property
    def batch(self) -> float:
        """The usual number of examples in a step; 0 if unknown."""
        return 0.0 if self.data is None else float(np.nanmedian(self.data.batch))

    @property
    def classes(self) -> list[Labels]:
        """The labels of the sampled steps whose class numbers are kept."""
        return [labels for _, labels in self.labels if labels.values is not None]

    @property
    def noise_scale(self) -> float:
        """The batch size at which noise and signal of the gradient are equal, from pairs of steps; NaN if unknown."""
        if self.data is None or not len(self.data):
            return math.nan
        found = noise_scale(self.data.gradient_cosine, self.data.gradient_growth, self.data.batch)
        return found if math.isfinite(found) else math.nan


__all__ = ["Run"]
