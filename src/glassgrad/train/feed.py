"""Batches of a user's loader for one step at a time, starting anywhere in an epoch.

A loader with `state_dict` (ours) reports its position. Any other iterable is restarted with the random state from the
beginning of its epoch, and the batches already used are skipped. This gives the same batches if the order comes from
`glassgrad.random`, `numpy.random` or `random`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.engine.tensor import Tensor
from glassgrad.train.kept.randomness import RandomState
from glassgrad.train.learners.engine import as_tensor

Array = Any  # np.ndarray


class LoaderFeed:
    """Yields the batches of a loader, epoch after epoch.

    Arguments: the loader; `accumulate`, batches per step; `check`, whether to look for NaN and inf in every batch.
    """

    def __init__(self, loader: Any, accumulate: int = 1, check: bool = True) -> None:
        self.loader = loader
        self.accumulate = accumulate
        self.check = check
        self.epoch = 0
        self.given = 0
        own = getattr(loader, "generator", None)
        self.random = RandomState(*([own] if hasattr(own, "get_state") else []))
        self._stateful = hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")
        self._began: dict[str, Any] | None = None
        self._iterator: Iterator[Any] | None = None
        if self.batches == 0:
            raise errors.FIT_EMPTY_LOADER(what="train_loader", reason="its length is 0")

    @property
    def batches(self) -> int | None:
        """Batches per epoch; None if unknown."""
        try:
            return len(self.loader)
        except TypeError:
            return None

    @property
    def steps(self) -> int | None:
        """Steps per epoch."""
        return None if self.batches is None else -(-self.batches // self.accumulate)

    def at(self, step: int) -> tuple[Array, ...]:
        """Return the batch of a step: tensors, or a list of the accumulated batches."""
        first = self._next()
        if first is None and self.given:
            self.epoch += 1
            self._iterator = None
            first = self._next()
        if first is None:
            raise errors.FIT_EMPTY_LOADER(what="train_loader", reason=f"epoch {self.epoch + 1} has none")
        if self.accumulate == 1:
            return first
        found = [first]
        while len(found) < self.accumulate and (further := self._next()) is not None:
            found.append(further)
        return tuple(found)

    def _next(self) -> tuple[Array, ...] | None:
        """Return the next batch of this epoch as tensors; None after the last."""
        if self._iterator is None:
            self._begin()
        assert self._iterator is not None
        batch = next(self._iterator, None)
        if batch is None:
            return None
        self.given += 1
        parts = parts_of(batch)
        if self.check:
            for place, part in enumerate(parts):
                self._check(part, place)
        return parts

    def _begin(self) -> Iterator[Any]:
        self.given = 0
        if not self._stateful:
            self._began = self.random.state_dict()
        self._iterator = iter(self.loader)
        return self._iterator

    def _check(self, part: Array, place: object) -> None:
        if isinstance(part, Mapping):
            for name, value in part.items():
                self._check(value, repr(name))
            return
        array = getattr(part, "array", None)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fV" or not array.size:
            return
        # NaN and infinity survive a sum, which takes a fraction of the time of testing every number.
        total = np.add.reduce(array, axis=None)
        if total - total == 0 or (bad := ~np.isfinite(array)).sum() == 0:
            return
        index = np.unravel_index(int(bad.argmax()), bad.shape)
        raise errors.FIT_DATA_NOT_FINITE(
            batch=self.given,
            epoch=self.epoch + 1,
            part=place,
            index=", ".join(map(str, index)),
            value=float(array[index]),
            count=int(bad.sum()),
            size=array.size,
        )

    def pause(self) -> None:
        """Stop the loader's processes, if any; the next batch is unaffected."""
        if getattr(self.loader, "num_workers", 0) and self._stateful and isinstance(self._iterator, Generator):
            state = self.state_dict()
            self._iterator.close()  # our loader's
            self.load_state_dict(state)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the next batch."""
        begun = self._iterator is not None
        return {
            "epoch": self.epoch,
            "given": self.given if begun else None,
            "loader": self.loader.state_dict() if self._stateful and begun else None,
            "began": self._began if begun else None,
        }

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Continue at the position of `state_dict`."""
        self.epoch, self._iterator = state["epoch"], None
        if state["given"] is None:
            return
        if self._stateful:
            self.loader.load_state_dict(state["loader"])
            self._begin()
        else:
            self.random.load_state_dict(state["began"])
            iterator = self._begin()
            for _ in range(state["given"]):
                next(iterator, None)
        self.given = state["given"]


def parts_of(batch: Any) -> tuple[Array, ...]:
    """Return a loader's batch as a tuple of tensors; a dictionary, or a single tensor, is a tuple of one."""
    if isinstance(batch, list | tuple):
        return tuple(part if type(part) is Tensor else as_tensor(part) for part in batch)
    return (as_tensor(batch),)
