"""A learner of any `nn` module: one training step, eager or compiled, with all its options.

`StepOptions` decides about clipping, skipping, averages of the weights, scaled losses and micro-batches. The update
itself is `optim.update.update`, which `GradientAccumulator` also uses.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad import nn
from glassgrad.amp import GradScaler
from glassgrad.engine.mode import no_grad
from glassgrad.engine.snapshot import Snapshot
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors.creation import from_numpy, tensor
from glassgrad.engine.tree import is_container, map_tree
from glassgrad.nn import functional as F
from glassgrad.nn.layers.sync_norm import synchronised
from glassgrad.nn.modes import evaluating
from glassgrad.nn.parallel import DistributedDataParallel
from glassgrad.ops.core import Array
from glassgrad.optim.ema import EMA
from glassgrad.optim.optimizer import Optimizer
from glassgrad.optim.update import OldValues, clip, has_state, update
from glassgrad.train.calibrate import calibrate_batch_norm
from glassgrad.train.kept.checkpoint import Stateful
from glassgrad.train.kept.randomness import RandomState
from glassgrad.train.learners.learner import CountedSteps, Learner, StepOptions
from glassgrad.train.policy import Policy
from glassgrad.train.ranks import Ranks, size_of


class EngineLearner(CountedSteps, Learner):
    """An `nn` module and its optimizer; with `compiled`, a step is one program.

    Arguments: the model; its optimizer; compiled, short for options=StepOptions(compiled=True); loss_fn(outputs,
    targets), or None for a model that returns its loss; options; averages, an `EMA` of the model; scaler; random,
    whether to keep the random state in checkpoints, because steps draw random numbers.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        compiled: bool = False,
        *,
        loss_fn: Callable[[Array, Array], Array] | None = F.cross_entropy,
        options: StepOptions | None = None,
        averages: EMA | None = None,
        scaler: GradScaler | None = None,
        random: bool = False,
    ) -> None:
        CountedSteps.__init__(self, options or StepOptions(compiled))
        self.model = model
        self.optimizer = optimizer
        self.loss_fn = loss_fn
        self.averages, self.scaler = averages, scaler
        self.policy = self._trained = Policy(model, self.options.dtype)
        self._begun = False
        parts: dict[str, Stateful] = {"model": AsArrays(model), "optimizer": AsArrays(optimizer)}
        if averages is not None:
            parts["averages"] = averages
        if scaler is not None:
            parts["scaler"] = scaler
        if random:
            parts["random"] = RandomState()
        self.parts: Mapping[str, Stateful] = parts
        self.step: Callable[..., Any]
        if self._is_plain:
            program = self.program(self._plain)
            self.step = lambda *batch: program(*_tensors(batch))
        else:
            parts["step"] = self
            self.step = self._accumulated if self.options.accumulate > 1 else self._watched
            self._whole = self.program(self._whole_step)
            self._micro = self.program(self._micro_step, keep_grads=True)
            self._update = self.program(self._update_step)

    @property
    def _is_plain(self) -> bool:
        return self.options.plain and self.averages is None and self.scaler is None

    def share(self, ranks: Ranks) -> None:
        """From now on, compute a part of every batch; gradients are averaged over the ranks.

        Raises:
            DistributedError: on every rank if the models differ; names the parameter and the rank.
        """
        self._ranks = ranks
        self._parallel = DistributedDataParallel(self.model)
        self._trained = Policy(self._parallel, self.options.dtype)
        if self._is_plain:
            program = self.program(self._shared_step)

            def step(*batch: Array) -> Array:
                part, weight = ranks.part(batch)
                return program(self._factor(weight), *_tensors(part))

            self.step = step

    def program(self, function: Callable[..., Any], keep_grads: bool = False) -> Callable[..., Any]:
        """Compile a function if the engine is "compiled"; else return it unchanged."""
        if not self.options.compiled:
            return function
        from glassgrad.compile import compile as compiled

        program: Callable[..., Any] = compiled(function, keep_grads=keep_grads)
        return program

    # --- the step, in parts that can be compiled ---

    def loss(self, *batch: Array) -> Array:
        """Return the loss of a batch: (inputs..., targets), or the inputs of a model that returns its loss."""
        return self.outputs_and_loss(*batch)[1]

    def outputs_and_loss(self, *batch: Array) -> tuple[Array, Array]:
        """Return the model's outputs for a batch, and the loss."""
        return self._outputs_and_loss(self.policy, batch)

    def _outputs_and_loss(self, policy: Policy, batch: Sequence[Array]) -> tuple[Array, Array]:
        if self.loss_fn is not None:
            outputs = policy.outputs(*batch[:-1])
            return outputs, self.loss_fn(outputs, policy.target(batch[-1]))
        found = policy.outputs(**batch[0]) if isinstance(batch[0], Mapping) else policy.outputs(*batch)
        return (found[0], found[-1]) if isinstance(found, tuple | list) else (found, found)

    def _loss_of_step(self, *batch: Array) -> Array:
        """Return the loss; its backward pass averages the gradients over the ranks if there are several."""
        if self._ranks is None:
            return self.loss(*batch)
        with synchronised(self._ranks.group):
            return self._outputs_and_loss(self._trained, batch)[1]

    def _plain(self, *batch: Array) -> Array:
        loss = self.loss(*batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def _shared_step(self, weight: Array, *batch: Array) -> Array:
        loss = self._loss_of_step(*batch) * weight
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def _whole_step(self, scale: Any, weight: Array, *batch: Array) -> tuple[Array, Array, Array]:
        buffers = OldValues(self.model.buffers() if self.options.skip_nonfinite else ())
        loss = self._loss_of_step(*batch)
        if weight is not None:
            loss = loss * weight
        self.optimizer.zero_grad()
        (loss if scale is None else loss * scale).backward()
        norm, made = self._update_step(scale)
        if made is not None:
            buffers.restore_unless(made)
        return loss, norm, made

    def one_step(self, *batch: Array) -> tuple[Callable[..., Any], tuple[Array, ...], str]:
        """Return a function that makes a step, its arguments for a batch, and the name of its compile backend."""
        backend = "llvm" if can_compile() else "numpy"
        if self.options.plain and self.averages is None and self.scaler is None:
            return self._plain, tuple(_tensors(batch)), backend
        first = batch[0] if self.options.accumulate > 1 else batch
        return self._whole_step, (self._scale(), None, *_tensors(first)), backend

    def _micro_step(self, weight: Array, *batch: Array) -> Array:
        loss = self._loss_of_step(*batch)
        (loss * weight).backward()
        return loss

    def _update_step(self, scale: Array) -> tuple[Array, Array]:
        options = self.options
        found = update(
            self.optimizer,
            factor=1.0 if scale is None else 1 / scale,
            max_norm=options.max_norm,
            clip_value=options.clip_value,
            skip_nonfinite=options.skip_nonfinite,
            norm=options.norms,
            averages=self.averages,
        )
        return found.norm, found.made

    # --- steps with options ---

    def _watched(self, *batch: Array) -> Array:
        """Make a step with options on one batch."""
        # A skipped step restores the state, which must therefore exist before tracing.
        whole = self._whole if self._ready() else self._whole_step
        weight = None
        if self._ranks is not None:
            part, share = self._ranks.part(batch)
            batch, weight = tuple(part), self._factor(share)
        loss, norm, made = whole(self._scale(), weight, *_tensors(batch))
        self._note(norm, made)
        return loss

    def _accumulated(self, *micro_batches: Sequence[Array]) -> float:
        """Make one step from several micro-batches; return the mean loss."""
        parts, loss, scale = self._weighted(micro_batches), 0.0, self._scale()
        buffers = OldValues(self.model.buffers() if self.options.skip_nonfinite else ())
        self.optimizer.zero_grad()
        for place, (batch, weight) in enumerate(parts):
            alone = self._ranks is None or place == len(parts) - 1
            with contextlib.nullcontext() if alone else self._parallel.no_sync():
                scaled = self._factor(weight if scale is None else weight * float(scale))
                loss += weight * float(self._micro(scaled, *_tensors(batch)))
        norm, made = (self._update if self._ready() else self._update_step)(scale)
        self.optimizer.zero_grad()
        if made is not None:
            buffers.restore_unless(made)
        self._note(norm, made)
        return loss

    def _factor(self, weight: float) -> Tensor:
        dtype = next((one.dtype for one in self.model.parameters() if one.dtype.kind == "f"), np.float32)
        return make(np.asarray(weight, dtype), None, False)

    def _ready(self) -> bool:
        return not self.options.skip_nonfinite or self._begun or has_state(self.optimizer)

    def _scale(self) -> Tensor | None:
        if self.scaler is None:
            return None
        return make(np.asarray(self.scaler.get_scale(), np.float32), None, False)

    def _note(self, norm: Array, made: Array) -> None:
        """Count a step as made or skipped."""
        done = made is None or bool(made)
        if norm is not None:
            self.norms.add(float(norm))
        if self.scaler is not None:
            self.scaler.note(not done)
        if done:
            # Changing a value that the program reads would retrace it; so this stays True after the first step.
            self._begun = self._begun or self.options.skip_nonfinite
        self._count(done)

    def state_dict(self) -> dict[str, Any]:
        return {"begun": self._begun, **super().state_dict()}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        self._begun = state["begun"]
        super().load_state_dict(state)

    def extras(self) -> dict[str, float]:
        found = super().extras()
        if self.scaler is not None:
            found["loss_scale"] = self.scaler.get_scale()
        return found

    # --- for callbacks and validation ---

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Set evaluation mode and the weights for evaluation during the block; afterwards restore everything."""
        averaged = self.averages.applied() if self.averages is not None else contextlib.nullcontext()
        with evaluating(self.model), averaged, untouched(self.model), no_grad():
            yield

    def check(self, *batch: Array) -> None:
        """Compute a loss op by op, so that an error names the user's line instead of a traced program."""
        if self.options.compiled:
            with untouched(self.model), no_grad():
                self.loss(*batch)

    target = staticmethod(lambda target: target)  # metrics get targets unchanged

    @contextmanager
    def gradients(self, *batch: Array) -> Iterator[float]:
        """Give every parameter the gradient of a batch within the block; yield the loss.

        Random numbers, buffers and gradients are restored, so the next step is unaffected.
        """
        before = [(parameter, parameter._grad) for parameter in self.model.parameters()]
        with untouched(self.model):
            try:
                for parameter, _ in before:
                    parameter._grad = None
                micro_batches = batch if self.options.accumulate > 1 else (batch,)
                sizes = [size_of(one) for one in micro_batches]
                total = 0.0
                for one, size in zip(micro_batches, sizes, strict=True):
                    loss = self.loss(*_tensors(one))
                    (loss if len(sizes) == 1 else loss * (size / sum(sizes))).backward()
                    total += float(loss) * (size / sum(sizes))
                yield total
            finally:
                for parameter, g in before:
                    parameter._grad = g

    def clip(self) -> float | None:
        """Clip the current gradients like a step; return the norm before, or None if steps do not clip."""
        max_norm, clip_value = self.options.max_norm, self.options.clip_value
        if max_norm is None and clip_value is None:
            return None
        return float(clip(self.model.parameters(), max_norm, clip_value))

    # --- for tasks ---

    def set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def logits(self, inputs: Array) -> Array:
        """Return the outputs in evaluation mode; every module keeps its own mode afterwards."""
        with evaluating(self.model), no_grad():
            return self.model(self.policy.cast(from_numpy(np.ascontiguousarray(inputs)))).numpy()

    def calibrate(self, inputs: Array) -> None:
        calibrate_batch_norm(self.model, inputs)

    def weights(self) -> dict[str, Array]:
        state: dict[str, Array] = _to_arrays(self.model.state_dict())
        return state

    def best_weights(self) -> dict[str, Array]:
        """Return the averaged weights if an average is kept, else the weights."""
        if self.averages is None:
            return self.weights()
        with self.averages.applied():
            return {name: np.array(array) for name, array in self.weights().items()}

    def load_weights(self, weights: Mapping[str, Array]) -> None:
        self.model.load_state_dict(_to_tensors(dict(weights)))

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Restore random state and buffers (running statistics) after the block."""
    before = Snapshot(tensors=model.buffers(), randoms=True)
    try:
        yield
    finally:
        before.restore()


class AsArrays:
    """A part of a checkpoint with arrays instead of tensors: the common form of all engines."""

    def __init__(self, part: Any) -> None:
        self._part = part
        # an optimizer with its state distributed over ranks has only the gathered state
        self._known: Callable[[], dict[str, Any]] = getattr(part, "known_state_dict", part.state_dict)

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = _to_arrays(self._known())
        return state

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        state = _to_tensors(state)
        if "param_groups" in state:  # another engine may store fewer options than this optimizer
            own = self._known()["param_groups"]
            groups = state["param_groups"]
            state["param_groups"] = [{**mine, **stored} for mine, stored in zip(own, groups, strict=True)]
        self._part.load_state_dict(state)


def as_tensor(value: Any) -> Any:
    """Convert an array, or a tensor of another library, to a Tensor; mappings and lists element by element."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if is_container(value):
        return map_tree(lambda part, _: as_tensor(part), value)
    if isinstance(value, Mapping):
        return {key: as_tensor(part) for key, part in value.items()}
    if hasattr(value, "__array__"):
        return from_numpy(np.asarray(value))
    return tensor(value)


def _tensors(batch: Sequence[Array]) -> Sequence[Array]:
    return [part if type(part) is Tensor else as_tensor(part) for part in batch]


def _to_arrays(tree: Any) -> Any:
    return map_tree(lambda leaf, _: np.asarray(leaf.detach().numpy()) if hasattr(leaf, "detach") else leaf, tree)


def _to_tensors(tree: Any) -> Any:
    return map_tree(lambda leaf, _: tensor(leaf) if isinstance(leaf, np.ndarray) else leaf, tree)


def can_compile() -> bool:
    """Tell whether native code can be compiled here; if not, the compiled engine runs eagerly."""
    return importlib.util.find_spec("llvmlite") is not None
