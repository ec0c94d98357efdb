"""The observer of what the parts of a model do beside their gradients: strays, outputs, statistics, helpers' calls."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.doctor import library, source_lines
from glassgrad.doctor.graphs.graph import COMPARES, KEPT, Constant, Graph, Labels
from glassgrad.doctor.library import Args, Array, Module, Optimizer, Tensor
from glassgrad.doctor.observers.calls import helpers, own_functions
from glassgrad.doctor.observers.calls.loads import drawn_anew, resting
from glassgrad.doctor.observers.copies import Copies
from glassgrad.doctor.observers.entering import Alike, Draws, Drift, Effects, Held, Mixing, Modes, of_training
from glassgrad.doctor.observers.entering.mixing import in_sequence_order
from glassgrad.doctor.observers.entering.recut import Recut
from glassgrad.doctor.observers.forward_watch import Looker
from glassgrad.doctor.observers.models import standing
from glassgrad.doctor.observers.models.apart import Apart
from glassgrad.doctor.observers.models.beginnings import gains, slight
from glassgrad.doctor.observers.models.grown import goes_on, grown, is_copied
from glassgrad.doctor.observers.models.reached import Reached
from glassgrad.doctor.observers.models.resting import Resting, fixed
from glassgrad.doctor.observers.outside import held_by_optimizers, leaves, outside, remade, told, where_put
from glassgrad.doctor.observers.reading import Readings
from glassgrad.doctor.observers.rows import Rows
from glassgrad.doctor.observers.sampling import Parameters
from glassgrad.doctor.observers.tokens import Tokens
from glassgrad.doctor.parts import Outside, Parts, Scheduled, Score
from glassgrad.doctor.reading.names import named
from glassgrad.doctor.run import Calls, Setup
from glassgrad.doctor.scores import score
from glassgrad.doctor.setup import stochastic

_FEATURES = 4096
_ROUNDS, _PASSES = 40, 64
_MOST_BYTES, _MOST_ELEMENTS = 8 << 20, 1 << 24
_ERRORS = named("mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits")


class Structure:
    """Gathers `Parts` during a run. `calls` are those that the watch counts."""

    def __init__(self, model: Module, optimizers: tuple[Optimizer, ...], named: Parameters, calls: Calls) -> None:
        self._model, self._optimizers, self._named, self._calls = model, optimizers, named, calls
        self._held = library.trained_by(*optimizers)
        self._mine = {id(parameter) for _, parameter in named} | {id(one) for one in self._held}
        self._outside: dict[str, Outside] = {}
        self._replaced: dict[str, str] = {}
        self._found = Parts()
        self._files: list[str] = []
        self._order = ""
        self._pending, self._room = False, _MOST_BYTES
        self._passes = 0
        self._resting = Resting()
        self._inputs: Array | None = None
        self._output: Array | None = None
        self._tokens_entered: Array | None = None
        self._entered = 0
        self.examples: list[tuple[Array, Array]] = []
        self.pairs: list[tuple[Array, Array]] = []
        self.places: list[tuple[Array, Array]] = []
        self.scores: list[Score] = []
        self.readings, self.tokens, self._rows, self._recut = Readings(), Tokens(), Rows(), Recut()
        self._drift, self._mixing, self._modes, self.validations = Drift(), Mixing(), Modes(), Held()
        self._alike_rows, self._effects, self._reached = Alike(), Effects(), Reached()
        self.apart = Apart()
        self._loaded: frozenset[int] = frozenset()
        self._whole: Array | None = None
        self._silent, self._looks = True, 0  # whether no loss has shown its targets so far
        self._forwards = 0
        self._draws = Draws(calls)
        self._args: Args = ()
        self._begun = self._asking = False
        self._told = 0
        self._copies: Copies | None = None
        self._frozen: tuple[str, ...] = ()
        self._twins: set[int] = set()
        self._elsewhere: set[int] = set()
        mine = {id(one) for one in self._held}
        self._moded = any(stochastic(model)) and _elements([one for _, one in named]) <= _MOST_ELEMENTS
        self._lacking = bool(mine) and any(id(one) not in mine for _, one in named)
        self._scales: list[tuple[int, float]] = []
        self.bad_inputs = False

    def connect(self, frame: FrameType) -> None:
        """Begin to hear of clipping and schedules; look at the weights as they are now."""
        self._files = source_lines.files_of(self._model, frame.f_code.co_filename)
        self._look_for_alike()
        self._copies = Copies(self._model, frame)
        self._outside |= {one.name: one for one in standing.loose(self._model, self._mine, self._files)}
        self._frozen = self.frozen()
        helpers.listen(self._heard)

    @property
    def lookers(self) -> tuple[Looker, ...]:
        """Those that look at the outputs of modules."""
        return self.readings, self.tokens, self._recut

    def end_pass(self) -> None:
        """Tell them that a sampled step has ended."""
        for one in (self.readings, self.tokens, self._recut):
            one.end_pass()

    def disconnect(self) -> None:
        """Stop hearing."""
        self._found.schedules = tuple(map(_scheduled, helpers.schedules(self._optimizers)))
        self._found.unfit = own_functions.unfit(self._model)
        helpers.leave(self._heard)

    def _heard(self, letter: str) -> None:
        if letter == "R" and not self._calls.steps:
            return  # a schedule takes a step when it is made
        if letter in helpers.SWITCHES:
            return
        if letter == "Z":
            if not self._calls.steps:
                return
            self._found.seeds += 1
        self._calls.note({"C": "clip", "R": "schedule", "Z": "seed"}[letter])
        if letter != "Z":
            self._note(letter)

    def _note(self, letter: str) -> None:
        if len(self._order) < 4 * _ROUNDS:
            self._order += letter

    # --- the events of a sampled step ---

    def forward(self, args: Args, output: Tensor, named: bool = False) -> None:
        """Look at the output of the model; `named` tells whether it got arguments by name as well."""
        numbers = library.numbers(library.first_tensor(output))
        entering = library.numbers(library.first_tensor(args))
        self._inputs, self._args, self._whole = None, () if named else args, entering
        self._forwards += 1
        self._recut.entered(entering)
        self._output, self._tokens_entered = numbers, None
        if entering is not None:
            self._rows.train(entering)
            alone = not named and sum(hasattr(one, "shape") for one in args) == 1
            self._alike_rows.look(entering, self._model, alone)
            self._reached.look(library.first_tensor(output), len(entering) if entering.ndim else 0)
            self._drift.look(self._calls.steps, entering)
        self.bad_inputs = entering is not None and entering.dtype.kind == "f" and not np.isfinite(entering.sum())
        if entering is not None and entering.ndim > 1 and entering.dtype.kind in "fiu":
            self._entered = len(entering)
            self._tokens_entered = entering if entering.ndim == 2 and entering.dtype.kind in "iu" else None
            self._inputs = entering[:KEPT].reshape(min(len(entering), KEPT), -1)
        if numbers is None or numbers.ndim < 1 or len(numbers) < 4 or numbers.dtype.kind != "f":
            return
        same = entering is not None and _rows_equal(numbers) and not _rows_equal(entering)
        self._found.same += same
        self._found.varied += not same
        self._found.zeros += (float(np.mean(numbers == 0)) if numbers.size < 1 << 16 else 0.0,)

    def backward(self, loss: Tensor) -> None:
        """Look at the beginning of a backward pass."""
        if self._silent and self._calls.steps and self._looks < _ROUNDS:
            self._looks += 1
            self._look_for_targets()
        self._passes += 1
        if self._forwards > 1:
            self._inputs = None  # the targets may belong to an earlier call
        self._forwards = 0
        if self._passes <= _PASSES:
            self._found.thrown += self._pending and not any(_has_gradient(one) for one in self._held)
        self._note("B")
        if not self._begun or self._calls.steps == 1 or (not self._replaced and grown(self._model, self._mine)):
            self._begun = True
            if not self._calls.steps:
                self._look_for_alike()
                self._found.anew = drawn_anew(self._model, helpers.taken())
                self._loaded = resting(helpers.taken())
            if self._lacking:  # a search through all objects, unless somebody tells of the optimizers
                self._elsewhere = held_by_optimizers(library.is_torch(self._model))
            self._look_for_strays(loss)

    def left(self) -> None:
        """Look at the end of a backward pass: it may have been that of another model."""
        if self._told < told() <= _ROUNDS:
            self._found.remade = remade(self._mine)
        self._told = max(self._told, told())
        if self._passes <= _PASSES:
            self._pending = any(_has_gradient(one) for one in self._held)

    def held(self, args: Args, output: Tensor) -> None:
        """Look at the inputs of a pass without gradients, and at its targets."""
        first = library.first_tensor(args)
        entering = library.numbers(first)
        if entering is None or self._asking or not self._calls.steps:
            return
        self._draws.look(first)
        self._calls.note("held")
        self._rows.held(entering, self._calls.steps)
        leaving = library.numbers(library.first_tensor(output))
        self._drift.held(entering, leaving)
        if not self.scores or self.validations.full:
            return
        if leaving is not None and leaving.ndim and entering.ndim:
            frame = provenance.user_frame()
            self.validations.look(self._calls.steps, frame, entering, leaving, self.scores[-1].kind)

    def passes(self, graph: Graph) -> None:
        """Note the targets of the binary losses of a backward pass that are one number for all examples."""
        for op in graph.ops:
            target = op.constant if op.name.startswith("binary") else None
            if target is not None and len(self._found.sides) < _ROUNDS:
                alike = target.low == target.high and math.prod(target.shape) > 1
                self._found.sides += ((target.low if alike else math.nan, op.where),)

    def learns(self, labels: Labels) -> None:
        """Keep the examples of the step, whose class numbers are known."""
        self.tokens.learns(labels)
        self._mixing.learns(self._args, labels.count, labels.distinct < labels.count)
        step = self._calls.steps
        if math.isfinite(labels.right):
            self._silent = False
            self.scores.append(Score(step, "classes", labels.right))
        self._modes.learns(step, "classes", self._output, labels.values)
        if labels.count == self._entered:
            self._keep(self.examples, labels.values)
        elif self._tokens_entered is not None and labels.count == self._tokens_entered.size:
            self._keep_places(self._tokens_entered, labels.values)

    def compares(self, graph: Graph) -> None:
        """Keep the examples of the step, whose targets are numbers, and look for targets that are not finite."""
        for op in graph.of_loss():
            if op.constant is not None and op.constant.bad and self._found.bad is None:
                self._found.bad = op.name, op.where
            if op.constant is not None and op.name in _ERRORS:
                self._mixing.learns(self._args, op.constant.shape[0] if op.constant.shape else 0, True)
                self._scales.append((self._calls.steps, abs(op.constant.mean) + op.constant.std))
                self._compares(op.name, op.constant)
        for op in graph.of_loss():
            target = op.constant
            if target is not None and op.name in COMPARES and math.isfinite(target.fit):
                kind = "binary" if op.name.startswith("binary") else "numbers"
                self._silent = False
                self.scores.append(Score(self._calls.steps, kind, target.fit))
                self._modes.learns(self._calls.steps, kind, self._output, target.values)
                if op.name == "subtract":
                    self._keep(self.pairs, target.values)
                break

    def _look_for_targets(self) -> None:
        """Score the outputs of the step against the user's variables, because its loss does not show the targets."""
        entering, leaving = self._whole, self._output
        if entering is None or leaving is None or not entering.ndim or not leaving.ndim:
            return
        found = of_training(provenance.user_frame(), entering, leaving)
        if found is not None:
            kind, target = found
            self.scores.append(Score(self._calls.steps, kind, score(leaving, target, kind)))
            classes = kind == "classes"
            values = target[:KEPT] if classes else target[:KEPT].astype(bool)
            self._keep(self.examples if classes else self.pairs, values)

    def _compares(self, name: str, target: Constant) -> None:
        values, binary = target.values, target.whole and target.low >= 0 and target.high <= 1
        if values is not None and name.startswith("binary") and binary:
            self._keep(self.pairs, values.astype(bool))
        elif name == "mse_loss":
            self._keep(self.pairs, values)

    def _keep(self, kept: list[tuple[Array, Array]], values: Array | None) -> None:
        inputs, self._inputs = self._inputs, None
        if inputs is not None and values is not None and len(values) == len(inputs) and self._room > 0:
            self._room -= 4 * inputs[:, :_FEATURES].size
            kept.append((inputs[:, :_FEATURES].copy(), values))

    def _keep_places(self, ids: Array, values: Array | None) -> None:
        """Keep each place of sequences as an example: its token and the one before."""
        if values is not None and self._room > 0:
            before = np.concatenate([ids[:, :1], ids[:, :-1]], axis=1)
            pairs = np.stack([ids, before], axis=2).reshape(-1, 2)[: len(values)]
            self._room -= 8 * pairs.size
            self.places.append((pairs.copy(), values))

    def stepped(self, clock: AbstractContextManager[object]) -> None:
        """Look whether the model sees its targets, when the graph of the step is gone, and what the mode changes."""
        args, self._args = self._args, ()
        if args and self._moded:
            with clock, self._asks():
                self._modes.ask(self._model, args)
        if args and self._effects.wants(self._calls.steps):
            with clock, self._asks():
                self._effects.ask(self._calls.steps, self._model, args)
        askers: tuple[Tokens | Mixing, ...] = (self.tokens, self._mixing) if args else ()
        for one in askers:
            if one.asks:
                with self._asks():
                    one.ask(self._model, args)

    @property
    def modes(self) -> list[Score]:
        """The scores of one batch in both modes."""
        return self._modes.scores

    @property
    def asking(self) -> bool:
        """Whether the watch, not the user, is calling the model."""
        return self._asking

    @contextmanager
    def _asks(self) -> Iterator[None]:
        """Call the model in the block: its passes are no validation, and its errors do not reach the user."""
        self._asking = True
        try:
            with suppress(Exception):
                yield
        finally:
            self._asking = False

    def stepping(self) -> None:
        """Note a step of the optimizer."""
        if self._moded:
            self._resting.look(self._model)
        self._pending = False
        self._calls.note("step")
        self._note("S")

    # --- what they show ---

    def _look_for_alike(self) -> None:
        matrices = [(name, library.values(one)) for name, one in self._named if len(one.shape) > 1]
        names = tuple(name for name, value in matrices if _alike(value))
        made = names and (source_lines.making_constants(self._files) or source_lines.assigning(names[0], self._files))
        self._found.matrices, self._found.alike, self._found.alike_at = len(matrices), names, made or ""
        if getattr(self._model, "called", True):  # the axes of plain tensors are unknown
            self._found.gains, self._found.slight = gains(self._model, matrices), slight(self._model, matrices)

    def _look_for_strays(self, loss: Tensor) -> None:
        behind = leaves(loss) if loss is not None else []
        strays = [one for one in behind if id(one) not in self._mine]
        if not strays:
            return
        names = {id(parameter): name for name, parameter in self._model.named_parameters()}
        if len(strays) == len(behind) and not any(id(one) in names for one in strays):  # the loss of another model
            return
        held = held_by_optimizers(library.is_torch(loss))
        self._found.against |= any(id(one) in held for one in strays)
        frame = provenance.user_frame()
        unheld = [one for one in strays if id(one) not in held]
        self._found.strays |= bool(unheld)
        for one in unheld:
            if name := names.get(id(one)):
                self._replaced[name] = where_put(self._model, name, frame)
                self._found.goes_on = goes_on(frame) if self._calls.steps > 1 else ""
        if not self._calls.steps:
            self._twins = {id(one) for one in unheld if is_copied(one, self._named)}
        rest = [one for one in unheld if id(one) not in names and id(one) not in self._twins]
        self._outside |= {one.name: one for one in outside(self._model, rest, frame)}

    def fitted(self, setup: Setup) -> Setup:
        """Return a setup as it is now: what is frozen, and what no optimizer has, none made later either."""
        lacking = [(name, one) for name, one in self._named if name in setup.not_given]
        others = tuple(name for name, one in lacking if id(one) in self._elsewhere | self._calls.later)
        loaded = tuple(name for name, one in lacking if id(one) in self._loaded and name not in others)
        loaded = () if setup.foreign else loaded  # an optimizer of other tensors may be meant for these
        left = tuple(name for name, _ in lacking if name not in {*others, *loaded})
        return replace(setup, frozen=self.frozen(), not_given=left, elsewhere=others, loaded=loaded)

    def frozen(self) -> tuple[str, ...]:
        """Return the names of the parameters that require no gradient now."""
        return tuple(name for name, parameter in self._named if not library.trainable(parameter))

    def facts(self) -> Parts:
        """Return what was found."""
        idle, columns = self._effects.found(self._model)
        shared, looked = self._rows.shared()
        return replace(
            self._of_copies(self._of_parameters()),
            outside=tuple(self._outside.values()),
            replaced=tuple(self._replaced.items()),
            readings=self.readings.found(),
            carried=self.readings.carried(),
            passes=min(self._passes, _PASSES),
            files=tuple(self._files),
            padding=self.tokens.found(),
            leaks=self.tokens.leaks_at if self.tokens.leaks else None,
            repeats=self.tokens.repeats,
            twice=self.tokens.twice > 1,
            pads=self.tokens.pads(),
            pads_at=source_lines.calling({"Embedding"}, self._files, "padding_idx") if self.tokens.pads() else "",
            alone=self._told <= 1,
            shared=shared,
            held=looked,
            held_calls=self._rows.validations,
            mixed=self._mixed() if self._mixing.mixed else None,
            sizes=tuple(self._drift.sizes),
            beside=self._drift.beside(),
            scales=tuple(self._scales),
            rows=self._alike_rows.found(),
            layout=self._alike_rows.layout,
            idle=idle,
            columns=columns,
            single=self._reached.alone(),
            recut=self._recut.found,
            apart=self.apart.found(),
        )

    def _of_copies(self, parts: Parts) -> Parts:
        """Return facts, with those about copies of the model."""
        if self._copies is None:
            return parts
        return replace(
            parts,
            copies=tuple(self._copies.found(self._files)),
            follows=tuple(self._copies.follows(self._files)),
            stale=tuple(self._copies.stale(self._files)),
            twin=self._copies.twin(),
        )

    def _of_parameters(self) -> Parts:
        """Return what was noted during the run, with the state of the model and its parameters now."""
        trained = [parameter for _, parameter in self._named if library.trainable(parameter)]
        rounds = [part for part in self._order.split("S") if "C" in part and "B" in part]
        return replace(
            self._found,
            trainable=_elements(trained),
            trainable_tensors=len(trained),
            trainable_axes=max((len(one.shape) for one in trained), default=0),
            elements=_elements([parameter for _, parameter in self._named]),
            frozen_at=source_lines.freezing(self._files) if len(trained) < len(self._named) else "",
            thawed=tuple(sorted(set(self._frozen) - set(self.frozen()))),
            statistics=tuple(standing.statistics(self._model, self._calls.steps, self._files)),
            clips=sum(part.rindex("C") < part.index("B") for part in rounds),
            rounds=len(rounds),
            dropouts=tuple(standing.dropouts(self._model, self._files)),
            drawn_at=source_lines.drawing(self._files),
            unloaded=tuple(helpers.unloaded(self._model)),
            pretending=standing.pretending(self._model, self._files),
            fixed=tuple(name for name, _ in fixed(self._model)),
            moving=self._resting.found(self._model),
        )

    def _mixed(self) -> tuple[str, str, str]:
        kinds = in_sequence_order(self._model)
        made = source_lines.calling(kinds, self._files) if kinds else ""
        return ", ".join(sorted(kinds)), made, self._mixing.line


def _scheduled(known: tuple[Any, str, int]) -> Scheduled:
    """Describe a schedule of the rate."""
    one, where, steps = known
    period = getattr(one, "T_max", 0)
    return Scheduled(type(one).__name__, where, steps, int(period) if isinstance(period, int | float) else 0)


def _alike(array: Array) -> bool:
    """Tell whether all units of a layer have equal weights: equal rows, or a single row of one number."""
    return _rows_equal(array) if len(array) > 1 else array.size > 1 and bool((array == array.flat[0]).all())


def _rows_equal(array: Array) -> bool:
    """Tell whether all rows of an array are equal: quickly, if the first two differ."""
    return bool((array[:1] == array[1:2]).all() and (array == array[:1]).all())


def _has_gradient(parameter: Tensor) -> bool:
    """Tell whether a parameter has a gradient that is not zero."""
    found = library.gradient(parameter)
    return found is not None and bool(found.any())


def _elements(parameters: Collection[Any]) -> int:
    return sum(math.prod(one.shape) for one in parameters)
