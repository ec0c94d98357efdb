"""What a watch knows of the parts of a model beside its parameters, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Outside:
    """Parameters that take part in the forward pass, and that no module of the model and no optimizer has.

    Attributes:
        name: the attribute or the variable that holds them, such as "Net.layers".
        held_in: "list", "dict", "tuple" or "set" for an attribute of the model, "module" or "parameter" for a variable.
        count: the number of their elements.
        where: the user's line that assigns it.
        twice: the user's line that gave an optimizer the parameters of another instead; empty if none did.
    """

    name: str
    held_in: str
    count: int
    where: str
    twice: str = ""


@dataclass(frozen=True)
class Statistics:
    """A normalisation whose running statistics differ from those of training: `arrived` is the share that has come."""

    name: str
    momentum: float
    arrived: float
    where: str


@dataclass(frozen=True)
class Reading:
    """A recurrent layer of which the loss reads the beginning only: "first" step, or one "example" of the batch."""

    name: str
    kind: str
    reads: str
    length: int


@dataclass(frozen=True)
class Padding:
    """Padding that the loss reaches: the embedding it enters, the token, whether the embedding knows of it.

    `counted` tells whether the loss has the filler among its targets, `inverted` whether it depends on the filler more
    than on the words.
    """

    name: str
    filler: int
    by_index: bool
    counted: bool
    inverted: bool = False


@dataclass(frozen=True)
class Score:
    """How well the outputs for a batch fit their targets: the share of right classes or of explained variance.

    Attributes:
        step: of the training.
        kind: "classes", "binary" or "numbers".
        training, evaluation: the scores in both modes; `evaluation` is NaN where only the step itself was seen.
    """

    step: int
    kind: str
    training: float
    evaluation: float = math.nan


@dataclass(frozen=True)
class Copied:
    """The number of sampled batches, and of those whose rows are copies of a few rows (`alike`) or of one (`same`)."""

    batches: int = 0
    alike: int = 0
    same: int = 0


@dataclass(frozen=True)
class Layout:
    """Images with channels last: the correlation of neighbours, and of elements `channels` places apart."""

    channels: int
    near: float
    other: float


@dataclass(frozen=True)
class Scheduled:
    """A schedule of the rate: its class, the line that makes it, its steps, and the length of its half wave, else 0."""

    kind: str
    where: str
    steps: int
    period: int


@dataclass(frozen=True)
class Unfit:
    """A backward pass that does not fit its forward pass.

    Attributes:
        name: of the function; `where`: the line of its backward pass; `returned`: the line that returns the gradients.
        operand: the index of the operand whose gradient is wrong, from 0 on.
        given, wanted: a gradient, and the difference of the outputs for it.
        at: the element of the operand, if the function works element by element; otherwise None.
    """

    name: str
    where: str
    returned: str
    operand: int
    given: float
    wanted: float
    at: float | None = None


@dataclass
class Parts:
    """These facts about a run, which its observer fills in.

    Attributes:
        outside: parameters in the forward pass that nobody trains.
        replaced: (parameter, the user's line that put its module there) of those that came after the optimizer.
        goes_on: the user's line outside of all functions where the training goes on with these; empty if they came
            before training began.
        alike: matrices whose rows are equal when training begins; `matrices`: the number of all matrices.
        alike_at: the user's line that made them so.
        trainable: the number of trainable elements; `elements`: of all elements.
        trainable_tensors, trainable_axes: the number of the tensors that they are in, and the most axes of one.
        frozen_at: the user's line that freezes.
        thawed: parameters that were frozen when training began, and are not now.
        statistics: normalisations with poor running statistics.
        readings: recurrent layers that are read at their beginning.
        thrown: backward passes whose gradients were gone before a step used them, of `passes` passes.
        clips: rounds in which gradients were clipped before the backward pass alone, of `rounds` with a clip.
        same, varied: sampled steps in which all outputs were equal for unequal inputs, and the others.
        zeros: for each of these, the share of outputs that are exactly 0.
        files: the user's files that may hold the model.
        padding: padding that the loss reaches, None without any.
        leaks: the user's line at which outputs begin to depend on tokens that are their targets; "" if no line shows
            it, None if they do not.
        carried: recurrent layers that begin with the state of an earlier batch.
        against: whether the loss passes through a model that another optimizer trains.
        alone: whether the program has one optimizer only.
        seeds: how often one seed was set again after the first step.
        shared, held: examples of passes without gradients that were trained on too, and their number.
        held_calls: the number of validations that these passes make, each between two steps.
        dropouts: (module, probability, the user's line) of dropouts that leave nearly nothing.
        copies: (variable, the user's line) of copies of the model that still have its first weights.
        bad: (op, the user's line) of the first loss whose target or weight is not finite.
        stale: (variable, normalisation, the user's line) of copies of which only the parameters follow the model.
        mixed: (class of a layer, the user's line that makes it, the line at which it begins) if an output depends on
            other examples of the batch; all may be empty.
        sizes: (step, deviation) of the inputs.
        beside: (mean, deviation) of the inputs in training, and of those in passes without gradients.
        gains: (matrix, its deviation times the root of the number of its inputs) when training begins.
        slight: matrices that begin near 0, as in word2vec; they may grow by any factor in a healthy run.
        drawn_at: the user's line that draws weights.
        unloaded: (the user's line, number of weights) of loads of which no name fitted.
        pads: (embedding, index) of an embedding whose padding index comes among the others; `pads_at`: the line that
            makes it.
        repeats: whether each output can read its target off its own input.
        twice: whether the target of each place is the token two places ahead.
        strays: whether the loss passes through parameters that no optimizer has, such as those of a target network.
        twin: whether another model of the same weights exists, such as a target network.
        sides: (number, line) of the binary losses of all backward passes: the number that all targets are, NaN if they
            differ.
        fixed: normalisations and dropouts of which no parameter is trained, in a module of which none is.
        moving: frozen normalisations whose running statistics changed all the same.
        pretending: modules with an attribute `requires_grad`, which has no effect, and the user's line that sets one.
        scales: (step, size) of the targets of an error, which move if a model makes them.
        rows: the number of batches whose rows are copies of each other.
        layout: the layout of images, if their channels seem to be in another axis than the model expects; else None.
        idle: the arguments of the model that have no effect.
        columns: the columns without an effect, if the model has only one argument.
        single: (index, passes) of the only example of each batch that the loss reaches; None if it reaches others.
        follows: (variable, distance, parameter, the user's line) of copies less than a step away from the model.
        anew: (the user's line, matrices, all matrices) of a load whose weights were initialised again before training.
        schedules: the schedules of the optimizers of the model.
        remade: how often the program made an optimizer of the same parameters, and the user's line.
        apart: (the user's line, calls) of forward passes in training mode that no backward pass uses.
        recut: the shapes of the inputs of the model and of its first layer, if both have the same numbers in one order.
        unfit: functions of the user whose backward pass does not fit their forward pass.
    """

    outside: tuple[Outside, ...] = ()
    replaced: tuple[tuple[str, str], ...] = ()
    goes_on: str = ""
    alike: tuple[str, ...] = ()
    matrices: int = 0
    alike_at: str = ""
    trainable: int = 0
    trainable_tensors: int = 0
    trainable_axes: int = 0
    elements: int = 0
    frozen_at: str = ""
    thawed: tuple[str, ...] = ()
    statistics: tuple[Statistics, ...] = ()
    readings: tuple[Reading, ...] = ()
    thrown: int = 0
    passes: int = 0
    clips: int = 0
    rounds: int = 0
    same: int = 0
    varied: int = 0
    zeros: tuple[float, ...] = ()
    files: tuple[str, ...] = ()
    padding: Padding | None = None
    leaks: str | None = None
    carried: tuple[str, ...] = ()
    against: bool = False
    alone: bool = True
    seeds: int = 0
    shared: int = 0
    held: int = 0
    held_calls: int = 0
    dropouts: tuple[tuple[str, float, str], ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    stale: tuple[tuple[str, str, str], ...] = ()
    bad: tuple[str, str] | None = None
    mixed: tuple[str, str, str] | None = None
    sizes: tuple[tuple[int, float], ...] = ()
    beside: tuple[tuple[float, float], tuple[float, float]] | None = None
    gains: tuple[tuple[str, float], ...] = ()
    slight: tuple[str, ...] = ()
    drawn_at: str = ""
    unloaded: tuple[tuple[str, int], ...] = ()
    pads: tuple[str, int] | None = None
    pads_at: str = ""
    repeats: bool = False
    twice: bool = False
    strays: bool = False
    twin: bool = False
    scales: tuple[tuple[int, float], ...] = ()
    sides: tuple[tuple[float, str], ...] = ()
    fixed: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()
    pretending: tuple[tuple[str, ...], str] = ((), "")
    rows: Copied = Copied()
    layout: Layout | None = None
    idle: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    single: tuple[int, int] | None = None
    follows: tuple[tuple[str, float, str, str], ...] = ()
    anew: tuple[str, int, int] | None = None
    schedules: tuple[Scheduled, ...] = ()
    remade: tuple[int, str] = (0, "")
    apart: tuple[str, int] = ("", 0)
    recut: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    unfit: tuple[Unfit, ...] = ()
