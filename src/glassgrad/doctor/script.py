"""Run a script and watch all its trainings: one for every optimizer of glassgrad or PyTorch that it creates."""

from __future__ import annotations

import functools
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

from glassgrad.base import provenance
from glassgrad.doctor.deeper.experiments import Bench
from glassgrad.doctor.deeper.taking import DeepWatch
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Module, Optimizer, Tensor, alive, trained_by
from glassgrad.doctor.observers.calls import helpers
from glassgrad.doctor.observers.models.tensors import model_of, model_of_tensors
from glassgrad.doctor.observers.outside import told_of_all
from glassgrad.doctor.unowned import Seeker, UnownedWatch
from glassgrad.doctor.watching import Watch
from glassgrad.errors.tracebacks import shortened, wanted

_ALIKE = 4
"""The number of trainings that are watched of those whose optimizers one call makes."""


@dataclass(frozen=True)
class Watched:
    """One training of a script: the model's class, the place where its optimizer was made, and the findings.

    `fits` says how well the outputs fit the targets at the end: the share of correct predictions, or of explained
    variance, by what was measured. `trails` are the places of its first calls and of the calls that led there, the
    innermost first. `bench` is what experiments with it need, None if none were asked for.
    """

    model: str
    made: str
    steps: int
    samples: int
    findings: tuple[Finding, ...]
    fits: Mapping[str, float] = field(default_factory=dict)
    bench: Bench | None = None
    trails: Mapping[str, tuple[provenance.Span, ...]] = field(default_factory=dict)


def run_script(
    path: str | Path,
    arguments: Sequence[str] = (),
    preset: str = "standard",
    *,
    nan: bool = False,
    deeper: bool = False,
) -> tuple[list[Watched], bool]:
    """Run a script like `python path arguments`; return its watched trainings, and whether it succeeded.

    Exceptions are printed as by Python. With `nan` the step that makes a NaN raises one. With `deeper` batches are
    kept for experiments.
    """
    watches = _Watches(DeepWatch if deeper else Watch, preset, nan)
    before = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path[0] = str(Path(path).resolve().parent)
    ended = True
    try:
        with (
            _heard_of_helpers(),
            told_of_all() as told,
            _told_of_loops(watches, preset) as seeker,
            _told_of_optimizers(lambda optimizer: watches.begin(told, optimizer), seeker),
        ):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stop:
        ended = stop.code in {None, 0}
    except Exception as error:  # noqa: BLE001 - the script's own error
        ended = False
        error.__traceback__ = _own(error)
        traceback.print_exception(error.with_traceback(shortened(error) if wanted() else error.__traceback__))
        for watch in watches.all:
            watch.calls.failure = f"{type(error).__name__}: {str(error).strip()}"
    finally:
        watches.end()
        sys.argv, sys.path[:] = before
    return [_watched(one) for one in watches.all], ended


def _watched(one: Watch) -> Watched:
    """Return what a watch has seen."""
    bench = one.bench() if isinstance(one, DeepWatch) else None
    model, built = type(one.model).__name__, one.run.setup.built
    trails = {name: tuple(provenance.span_of(*site) for site in sites) for name, sites in one.calls.trails.items()}
    return Watched(model, built, one.calls.steps, len(one.data), one.findings, _fits(one), bench, trails)


def _fits(one: Watch) -> dict[str, float]:
    """Return the scores of the last steps, and of the last passes without gradients."""
    run = one.run
    late = [score.training for score in run.scores if score.step > run.calls.steps / 2][-8:]
    held_out = [score.training for score in run.validations[-3:]]
    found = {f"fit of {run.model} in training": late, f"fit of {run.model} in passes without gradients": held_out}
    return {name: sum(values) / len(values) for name, values in found.items() if values}


def _own(error: Exception) -> TracebackType | None:
    """Return the traceback from the script's first line on."""
    frames = error.__traceback__
    while frames is not None and (
        "runpy" in frames.tb_frame.f_code.co_filename or provenance.is_internal(frames.tb_frame.f_code.co_filename)
    ):
        frames = frames.tb_next
    return frames


class _Watches:
    """The watches of a script's trainings.

    A line that makes one optimizer after another, as for each fold or each task, has its first `_ALIKE` trainings
    watched. Each of them ends when the next one begins.

    Attributes:
        all: the watches in the order in which they began.
    """

    def __init__(self, kind: type[Watch], preset: str, nan: bool) -> None:
        self.all: list[Watch] = []
        self._open: list[Watch] = []
        self._kind, self._preset, self._nan = kind, preset, nan
        self._made: dict[tuple[CodeType, int], list[Watch]] = {}

    def begin(self, told: Callable[[Optimizer], None], optimizer: Optimizer) -> None:
        """Watch the model of an optimizer, unless it is watched already."""
        told(optimizer)
        frame = provenance.user_frame()
        held = set(map(id, trained_by(optimizer)))
        for watch in self.all:
            watch.heard.later |= held
        alike = self._made.setdefault((frame.f_code, frame.f_lasti), [])
        last_one = self._open[-1] if self._open and self._open[-1] in alike else None
        if len(alike) >= _ALIKE and last_one is None:
            return
        model = _owner(held) or model_of(optimizer, frame)
        known = next((watch for watch in self.all if watch.model is model), None)
        if known is not None:
            known.heard.followed |= known.calls.steps > 0
            return
        if last_one is not None and last_one.calls.steps:
            self._open.pop().__exit__(None, None, None)
        if model is not None and len(alike) < _ALIKE:
            alike.append(self.add(self._kind(model, optimizer, preset=self._preset, report=False, nan=self._nan)))

    def add(self, watch: Watch) -> Watch:
        """Begin a watch."""
        watch.__enter__()
        self.all.append(watch)
        self._open.append(watch)
        return watch

    def end(self) -> None:
        """End all watches, the youngest first: each puts back what it found."""
        while self._open:
            self._open.pop().__exit__(None, None, None)


@contextmanager
def _told_of_loops(watches: _Watches, preset: str) -> Iterator[Seeker]:
    """Watch a loop that changes its tensors itself, if the script makes no optimizer."""
    from glassgrad.engine.mode import MODE

    def found(tensors: list[Tensor]) -> None:
        frame = provenance.user_frame()
        model = _owner({id(one) for one in tensors}) or model_of_tensors(tensors, frame)
        seeker.rest()
        if model is not None:
            watches.add(UnownedWatch(model, preset=preset, report=False))

    seeker = Seeker(found, lambda: bool(watches.all))
    if MODE.witness is None:
        MODE.witness = seeker
    try:
        yield seeker
    finally:
        seeker.rest()


def _owner(held: set[int]) -> Module | None:
    """Return the outermost live module that holds most of the given parameters."""
    best, most = None, (0, 0)
    for thing in modules_alive():
        mine = [id(parameter) for parameter in thing.parameters()]
        rank = (len(held.intersection(mine)), len(list(thing.modules())))
        if rank[0] and rank > most:
            best, most = thing, rank
    return best


def modules_alive() -> Iterator[Module]:
    """Yield the modules of glassgrad and PyTorch that are alive."""
    ours, theirs = sys.modules.get("glassgrad.nn.module"), provenance.pytorch()
    return alive(*(one for one in (ours and ours.Module, theirs and theirs.nn.Module) if one))


@contextmanager
def _heard_of_helpers() -> Iterator[None]:
    """Replace clipping and schedules before the script imports them, in the libraries that are loaded."""
    helpers.listen(_ignored)
    try:
        yield
    finally:
        helpers.leave(_ignored)


def _ignored(_letter: str) -> None:
    """Hear nothing."""


def _torch_arrived(tell: Callable[[], Any]) -> None:
    """PyTorch is loaded now."""
    helpers.listen(_ignored)
    helpers.leave(_ignored)
    tell()


@contextmanager
def _told_of_optimizers(tell: Callable[[Optimizer], None], seeker: Seeker) -> Iterator[None]:
    """Call `tell` with every optimizer that the block creates, and report backward passes to the seeker."""
    with ExitStack() as stack:

        def told(optimizer: Optimizer) -> None:
            seeker.rest()
            tell(optimizer)

        def theirs() -> None:
            from glassgrad.doctor.observers import pytorch

            stack.enter_context(_told_of(_their_class(), told))
            pytorch.hear(seeker)
            stack.callback(pytorch.leave, seeker)

        stack.enter_context(_told_of(_our_class(), told))
        finder = _Finder(lambda: _torch_arrived(theirs))
        if "torch.optim.optimizer" in sys.modules:
            theirs()
        else:
            sys.meta_path.insert(0, finder)
            stack.callback(finder.leave)
        yield


def _our_class() -> type:
    from glassgrad.optim.optimizer import Optimizer

    return Optimizer


def _their_class() -> Any:
    return sys.modules["torch.optim.optimizer"].Optimizer


class _Finder:
    """Detects the import of torch, to patch its optimizers."""

    def __init__(self, arrived: Callable[[], Any]) -> None:
        self._arrived = arrived

    def leave(self) -> None:
        """Stop waiting."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Load `torch` normally, and then call back."""
        if name != "torch":
            return None
        self.leave()
        import importlib.util

        spec = importlib.util.find_spec(name)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            executed = loader.exec_module

            def exec_module(module: Module) -> None:
                executed(module)
                self._arrived()

            loader.exec_module = exec_module
        return spec


@contextmanager
def _told_of(kind: Any, tell: Callable[[Optimizer], None]) -> Iterator[None]:
    """Call `tell` after each `__init__` of a class."""
    made = kind.__init__

    @functools.wraps(made)
    def told(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        tell(self)

    kind.__init__ = told
    try:
        yield
    finally:
        kind.__init__ = made
