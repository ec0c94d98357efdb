"""The check-up of one batch: inputs, outputs, gradients, and their faults."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.doctor import library, rules
from glassgrad.doctor.facts import CheckUp, Facts, Gradient, Layer, Targets
from glassgrad.doctor.graphs.graph import UNKNOWN
from glassgrad.doctor.graphs.tape_graph import graph_of
from glassgrad.doctor.graphs.torch_graph import Recorder
from glassgrad.doctor.library import Array, LossFunction, Module, Optimizer, Tensor
from glassgrad.doctor.observers.passes import PassWatch
from glassgrad.doctor.quantities import norms
from glassgrad.doctor.restoring.set_aside import aside
from glassgrad.doctor.run import Run
from glassgrad.doctor.setup import setup_of

IGNORED = -100
"""The label that PyTorch's losses ignore."""

# The usual losses, and the names of their ops in both libraries.
_BINARY = "binary_cross_entropy binary_cross_entropy_with_logits binarycrossentropy binarycrossentropywithlogits"
_NAMES = {
    "cross entropy": "cross_entropy nllloss nllloss2d",
    "binary cross entropy": _BINARY,
    "squared error": "mse_loss mseloss",
}
_LOSSES = {name: kind for kind, names in _NAMES.items() for name in names.split()}


def check_up(model: Module, batch: Any, loss_fn: LossFunction | None = None, optimizer: Optimizer = None) -> CheckUp:
    """Make one forward and backward pass and return the facts about it; the model is restored.

    Args:
        model: a module of glassgrad or PyTorch.
        batch: `(inputs, targets)`; of more than two, the last is the targets; a mapping is passed to the
            model as keywords. NumPy arrays become tensors of the model's library.
        loss_fn: called with output and targets (with output and batch for a mapping); without it the model returns the
            loss itself, or an object that has it as `loss`.
        optimizer: the optimizer of the training, or several, to be checked against the model.

    Raises:
        KindError: a model without `named_parameters()`.

    An exception of the model or the loss is part of the result (`failure`).

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.ReLU(), gg.nn.Linear(8, 3))
        >>> batch = gg.randn(16, 4), gg.randint(0, 3, (16,))
        >>> found = gg.doctor.check_up(model, batch, gg.nn.functional.cross_entropy)
        >>> round(found.expected, 2), len(found.gradients)
        (1.1, 4)
    """
    if not hasattr(model, "named_parameters"):
        raise errors.MONITOR_MODEL(owner="debug_training", given=type(model).__name__)
    given = Batch(model, batch, loss_fn)
    with np.errstate(all="ignore"), aside(model):  # overflow is among the findings
        found = _examined(model, given, loss_fn)
    findings = rules.findings(found)
    if optimizer is not None:
        optimizers = optimizer if isinstance(optimizer, list | tuple) else (optimizer,)
        setup = Run(setup=setup_of(model, optimizers, provenance.user_frame()))
        findings = rules.ordered((*findings, *rules.apply(rules.SETUP_RULES, setup)))
    return dataclasses.replace(found, findings=findings)


class Batch:
    """A batch in the form of a call: positional inputs or keywords, and targets.

    Raises:
        KindError: the value is not a batch, or contains something that is neither a tensor nor an array.
        ArgumentError: a batch without targets for a loss function.
    """

    def __init__(self, model: Module, batch: Any, loss_fn: Any = None) -> None:
        _check(batch)
        alone = not isinstance(batch, Mapping) and (not isinstance(batch, Sequence) or len(batch) == 1)
        if alone and loss_fn is not None and not library.is_by_hand(model):
            raise errors.CHECK_TARGETS(given=type(batch).__name__)
        self.keywords: dict[str, Any] = {}
        self.inputs: tuple[Any, ...] = ()
        self.targets: Any = None
        if isinstance(batch, Mapping):
            self.keywords = {name: _tensor(value, model) for name, value in batch.items()}
            self.targets = self.keywords.get("labels", self.keywords.get("targets"))
        elif isinstance(batch, Sequence):
            *inputs, targets = batch if len(batch) > 1 else (*batch, None)
            self.inputs = tuple(_tensor(value, model) for value in inputs)
            self.targets = _tensor(targets, model)
        else:
            self.inputs = (_tensor(batch, model),)

    def rows(self, rows: slice) -> Batch:
        """Return some of the examples."""
        part = object.__new__(Batch)
        part.keywords = {}
        part.inputs = tuple(_cut(value, rows) for value in self.inputs)
        part.targets = _cut(self.targets, rows)
        return part

    def facts(self) -> tuple[Facts, ...]:
        named = dict(self.keywords)
        named |= {f"input {at}" if len(self.inputs) > 1 else "input": value for at, value in enumerate(self.inputs)}
        found = []
        for name, value in named.items():
            array = library.numbers(value) if value is not self.targets else None
            if array is not None and array.size:
                found.append(Facts.of(name, array))
        return tuple(found)


def _check(batch: Any) -> None:
    """Refuse a batch that the model cannot be called with."""
    if isinstance(batch, Mapping):
        return  # keywords of the model, of any type
    parts = batch if isinstance(batch, Sequence) and not isinstance(batch, str | bytes) else (batch,)
    if not parts:
        raise errors.CHECK_BATCH(given="given an empty one", remedy="give it some examples.")
    for at, part in enumerate(parts):
        known = library.is_tensor(part) or hasattr(part, "shape") or part is None
        if not known and not isinstance(part, int | float | list | tuple | dict):
            given = f"given {type(part).__name__}" if part is batch else f"part {at + 1} is {type(part).__name__}"
            remedy = (
                "next(iter(loader)) is a batch of a loader." if hasattr(part, "__iter__") else "see doctor.examine."
            )
            if isinstance(part, str | bytes):
                remedy = "turn text into numbers first, as the training does."
            raise errors.CHECK_BATCH(given=given, remedy=remedy)


def _cut(value: Any, rows: slice) -> Any:
    return value[rows] if library.is_tensor(value) and len(value.shape) else value


def _tensor(value: Any, model: Module) -> Any:
    """Return a tensor of the model's library from an array, with floats in the precision of the model."""
    if not isinstance(value, np.ndarray) or library.is_by_hand(model):
        return value
    parameter = next((parameter for _, parameter in model.named_parameters()), None)
    if value.dtype.kind == "f" and parameter is not None:
        value = value.astype(library.values(parameter).dtype, copy=False)
    return library.tensor_of(value, library.is_torch(model))


def _examined(model: Module, given: Batch, loss_fn: LossFunction | None) -> CheckUp:
    watch = PassWatch(model)
    recorder = Recorder() if library.is_torch(model) else None
    watch.attach()
    output = loss = graph = None
    failure = stage = ""
    try:
        if recorder is not None:
            recorder.start()
        stage = "the model"
        output = model(*given.inputs, **given.keywords)
        stage = "the loss"
        loss = loss_of(output, given, loss_fn)
        kind = _LOSSES.get((library.producer(loss) or ("", 0))[0].rstrip("0123456789"), "")
        graph = graph_of(loss) if recorder is None else recorder.graph(loss)
        stage = "the backward pass"
        if library.is_by_hand(model):
            by_hand: Any = loss_fn
            model.backward(by_hand.backward())
        else:
            loss.backward()
    except Exception as error:  # noqa: BLE001 - any error of the user's code is reported
        failure = f"{stage} raised {type(error).__name__}: {str(error).strip()}"
    finally:
        watch.detach()
        if recorder is not None:
            recorder.stop()
    layers = watch.layers()
    numbers = library.numbers(library.first_tensor(output)) if loss_fn is not None or loss is not output else None
    targets = _targets(given.targets, numbers)
    kind = kind if loss is not None else ""
    expected, why = _expected(kind, targets, given.targets)
    gradients = _gradients(model, layers)
    value = library.numbers(loss)
    return CheckUp(
        model=type(model).__name__,
        parameters=sum(entry.values.summary.count for entry in gradients if entry.trainable),
        inputs=given.facts(),
        targets=targets,
        layers=layers,
        output=None if numbers is None or not numbers.size else Facts.of("output", numbers),
        loss=math.nan if value is None or value.size != 1 else float(value.item()),
        expected=expected,
        expected_why=why,
        loss_kind=kind,
        gradients=gradients,
        total_norm=norms.total(entry.gradient.summary.norm for entry in gradients if entry.gradient is not None),
        same_output=_is_same(numbers, given),
        probabilities=_are_shares(numbers),
        training=bool(getattr(model, "training", True)),
        failure=failure,
        graph=graph or UNKNOWN,
    )


def loss_of(output: Any, given: Batch, loss_fn: LossFunction | None) -> Tensor:
    """Return the loss of an output of the model."""
    if loss_fn is None:
        return getattr(output, "loss", output)
    return loss_fn(output, dict(given.keywords) if given.keywords else given.targets)


def _gradients(model: Module, layers: tuple[Layer, ...]) -> tuple[Gradient, ...]:
    order = {layer.name: at for at, layer in enumerate(layers)}
    found = []
    for name, parameter in model.named_parameters():
        gradient = library.gradient(parameter)
        found.append(
            Gradient(
                name,
                Facts.of(name, library.values(parameter)),
                None if gradient is None else Facts.of(name, gradient),
                library.trainable(parameter),
                len(parameter.shape),
                order.get(name.rpartition(".")[0], -1),
            )
        )
    return tuple(found)


def _targets(targets: Any, output: Array | None) -> Targets | None:
    array = library.numbers(targets)
    if array is None or not array.size:
        return None
    facts = Facts.of("targets", array)
    if array.dtype.kind not in "iu" or output is None or output.size % array.size:
        return Targets(facts)
    classes = output.size // array.size
    counted = array[array != IGNORED]
    outside = int(((counted < 0) | (counted >= classes)).sum()) if classes > 1 else 0
    return Targets(facts, classes if classes > 1 else 0, len(np.unique(counted)), outside)


def _expected(kind: str, targets: Targets | None, given: Any) -> tuple[float, str]:
    """Return the loss of a model that ignores its inputs, and how the number is derived."""
    if kind == "cross entropy" and targets is not None and targets.classes:
        return math.log(targets.classes), f"log {targets.classes}"
    if kind == "binary cross entropy":
        return math.log(2), "log 2"
    array = library.numbers(given)
    if kind == "squared error" and array is not None:
        return float(np.mean(np.square(array.astype(np.float64)))), "the mean square of the targets"
    return math.nan, ""


def _is_same(output: Array | None, given: Batch) -> bool:
    """Tell whether all examples have the same output although their inputs differ."""
    if output is None or output.ndim < 2 or len(output) < 2 or not np.isfinite(output).all():
        return False
    first = next((library.numbers(value) for value in given.inputs), None)
    if first is None or len(first) != len(output) or (first == first[:1]).all():
        return False
    spread = float(np.abs(output - output[:1]).max())
    return spread <= 1e-6 * max(float(np.abs(output).max()), 1e-30)


def _are_shares(output: Array | None) -> bool:
    if output is None or output.ndim < 2 or output.shape[1] < 2 or output.dtype.kind != "f" or not output.size:
        return False
    return bool((output >= 0).all() and np.allclose(output.sum(1, dtype=np.float64), 1, atol=1e-3))


__all__ = ["CheckUp", "check_up"]
