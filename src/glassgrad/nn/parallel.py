"""`torch.nn.parallel`: one model on several processes, and wrappers for the only device, the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed import sameness, world
from glassgrad.distributed.reducer import Reducer
from glassgrad.engine.mode import is_grad_enabled
from glassgrad.errors.missing import lister
from glassgrad.nn.module import Module
from glassgrad.ops.core import Array


class DataParallel(Module):
    """Calls its module; names in `state_dict` begin with "module.", as in PyTorch.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.DataParallel(gg.nn.Linear(2, 1))
        >>> sorted(model.state_dict())
        ['module.bias', 'module.weight']
    """

    def __init__(
        self, module: Module, device_ids: Iterable[object] | None = None, output_device: object = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids or [])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Array | tuple[Array, ...],
    device_ids: Iterable[object] | None = None,
    output_device: object = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Return ``module(*inputs)``, computed on the one device.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.parallel.data_parallel(gg.nn.Linear(2, 1), gg.zeros(3, 2)).shape
        (3, 1)
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Trains one model on several ranks: each rank's backward pass leaves the average of the ranks' gradients.

    Every rank wraps the same model, works on its part of the data (`utils.data.DistributedSampler`), and takes the
    same optimizer step. Parameters and buffers start with the values of rank 0. Gradients are averaged in buckets, each
    as soon as it is complete, while the backward pass continues (Li et al. 2020). A compiled step does the same. With a
    loss that is a mean over the batch, N ranks with a batch of B give the same result as one rank with N * B.

    Names in `state_dict` begin with "module.", as in PyTorch; `ddp.module` is the model itself.

    Args:
        module: the model; at least one parameter requires a gradient.
        device_ids: accepted and ignored, like `output_device` and `dim`: tensors are on the CPU.
        broadcast_buffers: before each forward, copy the buffers of rank 0 (running statistics).
        init_sync: check that the models are the same, and copy the values of rank 0.
        process_group: the ranks; by default all.
        bucket_cap_mb: megabytes of a bucket; by default 25, the first 1.
        find_unused_parameters: allow a backward pass to leave parameters out; those that all ranks leave out keep their
            gradient.
        check_reduction: accepted; every backward pass is checked.
        gradient_as_bucket_view: accepted; gradients have separate memory.
        static_graph: accepted; each backward pass is checked.

    Raises:
        DistributedError: before `init_process_group`; when the ranks' models differ, naming parameter and rank; in
            ``backward()``, when the loss does not depend on a parameter and `find_unused_parameters` is False.

    Example:
        >>> import glassgrad as gg, glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> model = gg.nn.parallel.DistributedDataParallel(gg.nn.Linear(2, 1))
        >>> model(gg.ones(4, 2)).mean().backward()
        >>> sorted(model.state_dict())
        ['module.bias', 'module.weight']
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Iterable[object] | None = None,
        output_device: object = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: world.ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids or [])
        self.process_group = world.resolve(process_group, "DistributedDataParallel")
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        trained = [(name, one) for name, one in module.named_parameters() if one.requires_grad]
        if not trained:
            raise errors.NO_TRAINED_PARAMETER(where=provenance.here())
        if init_sync:
            everything = [*module.named_parameters(), *module.named_buffers()]
            sameness.check_same(everything, self.process_group)
            sameness.take_from_first([tensor for _, tensor in everything], self.process_group)
        self.reducer = Reducer(trained, self.process_group, bucket_cap_mb, unused=find_unused_parameters)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; with recording on, the next backward pass averages gradients."""
        if self.require_backward_grad_sync:
            if self.broadcast_buffers:
                self.reducer.take_buffers(list(self.module.buffers()))
            if is_grad_enabled():
                self.reducer.arm()
        else:
            self.reducer.armed = False
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do not average gradients of forward passes in the block; each rank accumulates its own.

        The first backward pass of a forward outside the block averages the accumulated gradients.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, *_args: object, **_options: object) -> Any:
        """Raise: all ranks need equally many batches.

        Raises:
            DistributedError: always.
        """
        raise errors.DDP_JOIN(where=provenance.here())

    def register_comm_hook(self, state: object, hook: object) -> None:
        """Raise: gradients are sent unchanged.

        Raises:
            DistributedError: always.
        """
        raise errors.DDP_HOOK(where=provenance.here())


__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
__dir__ = lister(__name__)
