"""Optimizer state spread over the ranks (Rajbhandari et al. 2020, ZeRO stage 1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import primitives, world
from glassgrad.distributed.calls import as_bytes, flat
from glassgrad.distributed.waiting import wait_until
from glassgrad.engine.mode import MODE, TRACING, enable_grad
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.writes import Writer
from glassgrad.optim.optimizer import Limit, Optimizer, Options, Params


class ZeroRedundancyOptimizer(Optimizer):
    """Wraps an optimizer: each rank keeps the state of its share of the parameters and updates only these.

    It then sends the new values to the other ranks. Gradients must be the same on all ranks, as after
    `nn.parallel.DistributedDataParallel`. Each parameter goes as a whole, largest first, to the rank that has the least
    so far.

    Args:
        params: parameters or groups of them, the same on all ranks.
        optimizer_class: the class of the optimizer, such as `optim.Adam`; its rule must see one parameter at a time.
        process_group: the ranks; by default all.
        parameters_as_bucket_view: accepted; parameters stay where they are.
        overlap_with_ddp: must be False; gradients overlap with the backward pass anyway.
        defaults: options of the optimizer.

    Raises:
        DistributedError: before `init_process_group`; `state_dict` on a rank without the whole state.

    Example:
        >>> import glassgrad as gg, glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> model = gg.nn.Linear(2, 1)
        >>> optimizer = gg.optim.ZeroRedundancyOptimizer(model.parameters(), gg.optim.Adam, lr=0.01)
        >>> model(gg.ones(1, 2)).sum().backward()
        >>> optimizer.step()
        >>> optimizer.consolidate_state_dict()
        >>> sorted(optimizer.state_dict()["state"])
        [0, 1]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Params,
        optimizer_class: Callable[..., Optimizer],
        process_group: world.ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = world.resolve(process_group, "ZeroRedundancyOptimizer")
        if overlap_with_ddp:
            raise errors.ZERO_OVERLAP(where=provenance.here())
        self.optim = optimizer_class(params, **defaults)
        # The same objects: schedules change them, and `load_state_dict` fills them.
        self.defaults, self.param_groups, self.state = self.optim.defaults, self.optim.param_groups, self.optim.state
        self.moving = self.optim.moving
        self._written = Writer()
        self._owners: dict[int, int] = {}
        self._loads = [0] * self.process_group.size()
        self._whole: dict[str, Any] | None = None
        self._share_out()

    def _share_out(self) -> None:
        """Give every parameter without an owner to the rank with the smallest load."""
        new = [one for one in self._parameters() if id(one) not in self._owners]
        for parameter in sorted(new, key=lambda one: -one.numel()):
            rank = min(range(len(self._loads)), key=self._loads.__getitem__)
            self._owners[id(parameter)] = rank
            self._loads[rank] += parameter.numel()

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _is_mine(self, parameter: Tensor) -> bool:
        return self._owners[id(parameter)] == self.process_group.me

    def add_param_group(self, param_group: Options) -> None:
        """Add a group of parameters with its own options, on all ranks."""
        self.optim.add_param_group(param_group)
        self._share_out()

    def limits(self) -> list[Limit]:
        """Return the checks of a group's options."""
        return self.optim.limits()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's share, and receive the other parameters from the ranks that updated them."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        others = [parameter for parameter in self._parameters() if not self._is_mine(parameter)]
        gradients = [parameter._grad for parameter in others]
        mine = any(self._is_mine(one) and one._grad is not None for one in self._parameters())
        try:
            for parameter in others:
                parameter._grad = None  # a parameter without a gradient is skipped and gets no state
            if mine:
                self.optim.step()
        finally:
            for parameter, gradient in zip(others, gradients, strict=True):
                parameter._grad = gradient
        if self.process_group.size() > 1:
            self._exchange()
        return loss

    def _exchange(self) -> None:
        group = self.process_group
        for rank in range(group.size()):
            owned = [one for one in self._parameters() if self._owners[id(one)] == rank]
            if not owned:
                continue
            arrays = [one.lifted() for one in owned] if MODE.flags & TRACING else [one.array for one in owned]
            fresh = primitives.broadcast_p(*arrays, owner=primitives.register(group), src=rank)
            if rank != group.me:
                for parameter, value in zip(owned, fresh, strict=True):
                    parameter.assign(value) if isinstance(parameter.array, np.ndarray) else parameter.array.write(value)
        written = [one.array for one in self._parameters() if isinstance(one.array, np.ndarray)]
        self._written.wrote(written)

    # --- saving ---------------------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all ranks on rank `to`; every rank must call it before `to` calls `state_dict`."""
        group = self.process_group
        target = group.place_of(to, "consolidate_state_dict", "to")
        own = self.optim.state_dict()["state"]
        whole: dict[int, dict[str, Any]] = {}
        for rank in range(group.size()):
            whole |= _from_rank(own if rank == group.me else {}, rank, group)
        self._whole = None
        if group.me == target:
            self._whole = {**self.optim.state_dict(), "state": dict(sorted(whole.items()))}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as from a single optimizer; call `consolidate_state_dict` first."""
        if self._whole is None:
            raise errors.ZERO_NOT_WHOLE(rank=self.process_group.me, where=provenance.here())
        return self._whole

    def known_state_dict(self) -> dict[str, Any]:
        """Return the gathered state, or else the state of this rank's share; either can be loaded again."""
        return self.optim.state_dict() if self._whole is None else self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a whole state, from any number of ranks, and keep only this rank's share."""
        self.optim.load_state_dict(state_dict)
        for parameter in self._parameters():
            if not self._is_mine(parameter):
                self.state.pop(parameter, None)
        self._whole = None

    def __repr__(self) -> str:
        return f"ZeroRedundancyOptimizer of {self.optim!r}"


def _from_rank(state: dict[int, dict[str, Any]], rank: int, group: world.ProcessGroup) -> dict[int, dict[str, Any]]:
    """Send the state of one rank to all: first its description, then the arrays."""
    if group.size() == 1:
        return state
    listed = [[at, name, *_described(value)] for at, values in state.items() for name, value in values.items()]
    described = json.loads(bytes(_sent(np.frombuffer(json.dumps(listed).encode(), np.uint8), rank, group)))
    found: dict[int, dict[str, Any]] = {}
    for at, name, dtype, shape in described:
        if dtype is None:
            value = shape
        else:
            own = np.asarray(state[at][name].array, dtype) if rank == group.me else np.empty(shape, dtype)
            content = as_bytes(flat(own)).copy()
            wait_until(group.comm.Ibcast(content, rank).Test, group, "consolidate_state_dict")
            value = make(content.view(dtype).reshape(shape), None, False)
        found.setdefault(at, {})[name] = value
    return found


def _described(value: Any) -> tuple[Any, Any]:
    """Return dtype and shape of a tensor; (None, value) for a plain value."""
    return (value.dtype.name, list(value.shape)) if isinstance(value, Tensor) else (None, value)


def _sent(content: np.ndarray, rank: int, group: world.ProcessGroup) -> np.ndarray:
    size = np.array([content.size])
    wait_until(group.comm.Ibcast(size, rank).Test, group, "consolidate_state_dict")
    content = content.copy() if rank == group.me else np.empty(int(size[0]), np.uint8)
    wait_until(group.comm.Ibcast(content, rank).Test, group, "consolidate_state_dict")
    return content


__all__ = ["ZeroRedundancyOptimizer"]
