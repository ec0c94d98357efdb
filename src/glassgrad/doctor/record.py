"""A monitor's record as plain arrays, and its file format.

The file is NumPy's npz format: a zip of one npy file per array, which `numpy.load` reads without this library and
without running code. It holds every array of `MonitorData` under its name, and `format`, a number.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from glassgrad import errors
from glassgrad.doctor.library import Array
from glassgrad.doctor.quantities import FIELDS, LATER, Field
from glassgrad.doctor.quantities.histograms import SIGNED_BINS
from glassgrad.doctor.quantities.statistics import BIN_EDGES, BINS

FORMAT = 1


@dataclass
class Sample:
    """The data of one step, by field: a number, a vector over the parameters, or numbers by activation."""

    step: int
    values: dict[str, Any] = field(default_factory=dict)
    activations: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class MonitorData:
    """The complete record of a monitor. S samples, P parameters, A activations, B = 57 bins.

    Unknown values are NaN (0 in the counts): the gradient of a parameter without one, the norm after clipping if there
    was none.

    Attributes:
        steps: (S,) the number of each sample's training step, counted from 0.
        every: steps between samples.
        parameters: (P,) names; `sizes`: (P,) numbers of elements; `dims`: (P,) numbers of axes.
        activations: (A,) names of modules, or "tanh before NAME" for a function that was called without a module.
        kinds: (A,) class of the module or name of the function.
        bin_edges: (B - 1,) edges of the bins of |gradient|; the first and the last bin have no outer edge.
        loss, total_norm, total_norm_clipped: (S,).
        gradient_mean, gradient_std, gradient_norm, gradient_abs_mean, gradient_abs_max, gradient_zeros,
            gradient_nonfinite: (S, P).
        gradient_counts: (S, P, B).
        gradient_signed, parameter_signed: (S, P, 40), between four deviations below the mean and four above.
        parameter_mean, parameter_std, parameter_norm, parameter_abs_max: (S, P).
        update_norm: (S, P) the distance by which the step moved each parameter.
        activation_mean, activation_std, activation_abs_max, activation_nonfinite, activation_dead,
            activation_saturated: (S, A).
        gradient_cosine, gradient_growth: (S,) relative to the gradient of the previous step, if that was sampled too;
            curvature, update_reach: (S,) of the loss along the update in between.
        batch, rate: (S,) the number of examples, and the learning rate.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 1)
        >>> with gg.GradientMonitor(model) as monitor:
        ...     model(gg.ones(1, 2)).sum().backward()
        ...     monitor.update(0.0)
        >>> monitor.data.parameters, monitor.data.gradient_norm.shape
        (('weight', 'bias'), (1, 2))
    """

    steps: Array
    every: int
    parameters: tuple[str, ...]
    sizes: Array
    dims: Array
    activations: tuple[str, ...]
    kinds: tuple[str, ...]
    bin_edges: Array
    loss: Array
    total_norm: Array
    total_norm_clipped: Array
    gradient_mean: Array
    gradient_std: Array
    gradient_norm: Array
    gradient_abs_mean: Array
    gradient_abs_max: Array
    gradient_zeros: Array
    gradient_nonfinite: Array
    gradient_counts: Array
    gradient_signed: Array
    parameter_signed: Array
    parameter_mean: Array
    parameter_std: Array
    parameter_norm: Array
    parameter_abs_max: Array
    update_norm: Array
    activation_mean: Array
    activation_std: Array
    activation_abs_max: Array
    activation_nonfinite: Array
    activation_dead: Array
    activation_saturated: Array
    gradient_cosine: Array
    gradient_growth: Array
    curvature: Array
    update_reach: Array
    batch: Array
    rate: Array

    def __len__(self) -> int:
        return len(self.steps)

    def _repr_html_(self) -> str:
        from glassgrad.engine.reports import notebook

        return notebook.monitored(self)

    @property
    def update_ratio(self) -> Array:
        """‖change‖ / ‖weights‖ of each parameter, (S, P); healthy training is around 1e-3. NaN where weights are 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.update_norm / self.parameter_norm
        return np.where(self.parameter_norm > 0, ratio, np.nan)

    def before(self, step: int) -> MonitorData:
        """Return the samples of the steps before `step`."""
        return self._only(self.steps < step)

    def after(self, step: int) -> MonitorData:
        """Return the samples of the steps after `step`."""
        return self._only(self.steps > step)

    def _only(self, keep: Array) -> MonitorData:
        arrays = {entry.name: getattr(self, entry.name)[keep] for entry in FIELDS}
        return MonitorData(**{**vars(self), **arrays, "steps": self.steps[keep]})

    @classmethod
    def gather(
        cls, every: int, shapes: Mapping[str, tuple[int, ...]], kinds: Mapping[str, str], samples: Sequence[Sample]
    ) -> Self:
        """Combine samples. `shapes` are the parameters' by name, `kinds` the activations'."""
        arrays = {entry.name: _stacked(entry, samples, len(shapes), list(kinds)) for entry in FIELDS}
        return cls(
            steps=np.array([sample.step for sample in samples], np.int64),
            every=every,
            parameters=tuple(shapes),
            sizes=np.array([int(np.prod(shape)) for shape in shapes.values()], np.int64),
            dims=np.array([len(shape) for shape in shapes.values()], np.int64),
            activations=tuple(kinds),
            kinds=tuple(kinds.values()),
            bin_edges=BIN_EDGES.copy(),
            **arrays,
        )

    def samples(self) -> list[Sample]:
        """Undo `gather`: the samples one by one."""
        by_kind = {kind: [entry.name for entry in FIELDS if entry.kind == kind] for kind in _KINDS}
        plain = [name for kind in _KINDS if kind != "activation" for name in by_kind[kind]]
        return [
            Sample(
                int(step),
                {name: getattr(self, name)[at] for name in plain},
                {
                    activation: {name: float(getattr(self, name)[at, place]) for name in by_kind["activation"]}
                    for place, activation in enumerate(self.activations)
                },
            )
            for at, step in enumerate(self.steps)
        ]

    # --- the file ---

    def save(self, path: str | Path) -> None:
        """Write everything to an npz file, atomically. Raises `OSError`."""
        from glassgrad.data.atomic import write_atomically

        arrays: dict[str, Any] = {"format": FORMAT}
        for name, value in vars(self).items():
            arrays[name] = np.array(value, str) if isinstance(value, tuple) else value
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        write_atomically(Path(path), content.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote. Raises `errors.InputError` if the file is missing, truncated or not a record."""
        from glassgrad.data.numpy_files import read_arrays

        try:
            file = read_arrays(Path(path))
            if not isinstance(file, dict) or "format" not in file or int(file["format"]) != FORMAT:
                raise errors.MONITOR_FOREIGN(path=path)
            nothing = [Sample(int(step)) for step in file["steps"]]
            older = {entry.name: _stacked(entry, nothing, len(file["parameters"]), []) for entry in LATER}
            fields: dict[str, Any] = {
                name: _plain(file[name]) if name in file or name not in older else older[name]
                for name in cls.__dataclass_fields__
            }
            return cls(**fields)
        except OSError as error:
            raise errors.MONITOR_UNREADABLE(path=path, reason=error.strerror or error) from None
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, errors.InputError):
                raise
            raise errors.MONITOR_UNREADABLE(path=path, reason=error) from None


_KINDS = {"step": (), "parameter": ("P",), "activation": ("A",), "bins": ("P", "B"), "signed": ("P", "C")}


def _plain(array: Array) -> Any:
    """Convert names to a tuple of strings, and a 0-d number to an int."""
    if array.dtype.kind == "U":
        return tuple(str(name) for name in array)
    return array if array.ndim else int(array)


def _stacked(entry: Field, samples: Sequence[Sample], parameters: int, activations: list[str]) -> Array:
    sizes = {"P": parameters, "A": len(activations), "B": BINS, "C": SIGNED_BINS}
    shape = (len(samples), *(sizes[axis] for axis in _KINDS[entry.kind]))
    stacked = np.full(shape, np.nan if entry.dtype is np.float64 else 0, entry.dtype)
    for at, sample in enumerate(samples):
        if entry.kind != "activation":
            if entry.name in sample.values:
                stacked[at] = sample.values[entry.name]
            continue
        for place, name in enumerate(activations):
            if name in sample.activations:
                stacked[at, place] = sample.activations[name][entry.name]
    return stacked


__all__ = ["MonitorData"]
