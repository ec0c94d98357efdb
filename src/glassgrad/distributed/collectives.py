"""The collectives with PyTorch's names: every rank of a group calls the same one, and tensors are written in place.

MPI uses the memory of the tensors; only tensors that are not contiguous are copied. With ``async_op=True`` a call
returns a `Work` at once, and its tensors are ready after ``work.wait()``. A single process behaves as one rank.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from glassgrad.distributed import primitives
from glassgrad.distributed.calls import Call, as_bytes, flat, follow_up, put_back, rows, shown
from glassgrad.distributed.reductions import ReduceOp
from glassgrad.distributed.waiting import Work
from glassgrad.distributed.world import ProcessGroup
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replace a tensor on every rank by the reduction of the ranks' tensors.

    Bit-equal on all ranks. 16-bit floats are summed in float32 and rounded once; for booleans SUM is "or".

    Args:
        tensor: of one shape and dtype on all ranks; one that requires a gradient is written without being recorded.
        op: SUM, AVG (floating point and complex), PRODUCT, MIN, MAX (not complex), BAND, BOR, BXOR (integers, bool).

    Raises:
        DistributedError: the ranks' calls, shapes or dtypes differ, or a rank does not answer.
        KindError: the op is not defined for the dtype.

    Example:
        >>> import glassgrad as gg, glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> x = gg.tensor([1.0, 2.0])
        >>> dist.all_reduce(x)  # with two processes [2., 4.]
        >>> x
        tensor([1., 2.])
        >>> dist.destroy_process_group()
    """
    call = Call("all_reduce", group, async_op)
    if call.outside:
        return None
    if MODE.flags & TRACING:
        call.traced(tensor, lambda x: primitives.all_reduce_p(x, group=primitives.register(call.group), op=op.name))
        return call.run()
    array = call.array(tensor, "tensor", writes=True)
    how = call.reduction(op, array)
    call.agree(f"{shown(array)}, {op.name}")
    if call.alone:
        return call.run()
    elements = how.packed(flat(array))
    request = call.comm.Iallreduce(call.mpi.IN_PLACE, elements, getattr(call.mpi, how.op))
    return call.run(request, lambda: put_back(array, how.unpacked(elements, call.group.size(), array.dtype)))


def reduce(
    tensor: Tensor,
    dst: int,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Replace the tensor on rank `dst` by the reduction of the ranks' tensors; the others keep theirs.

    For arguments and errors see `all_reduce`.
    """
    call = Call("reduce", group, async_op)
    if call.outside:
        return None
    root = call.root(dst, "dst")
    array = call.array(tensor, "tensor", writes=call.group.me == root)
    how = call.reduction(op, array)
    call.agree(f"{shown(array)}, {op.name}, dst={dst}")
    if call.alone:
        return call.run()
    elements, operation = how.packed(flat(array)), getattr(call.mpi, how.op)
    if call.group.me != root:
        return call.run(call.comm.Ireduce(elements, None, operation, root))
    request = call.comm.Ireduce(call.mpi.IN_PLACE, elements, operation, root)
    return call.run(request, lambda: put_back(array, how.unpacked(elements, call.group.size(), array.dtype)))


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Replace the tensor on every rank by that of rank `src`.

    Args:
        tensor: of one shape and dtype on all ranks.
        src: the sender's rank in the world.

    Raises:
        DistributedError: the ranks' calls, shapes or dtypes differ, or a rank does not answer.
    """
    call = Call("broadcast", group, async_op)
    if call.outside:
        return None
    root = call.root(src, "src")
    array = call.array(tensor, "tensor", writes=call.group.me != root)
    call.agree(f"{shown(array)}, src={src}")
    if call.alone:
        return call.run()
    elements = flat(array)
    return call.run(call.comm.Ibcast(as_bytes(elements), root), lambda: put_back(array, elements))


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into a list, one for each rank, on every rank.

    Args:
        tensor_list: one tensor for each rank, written by the call.
        tensor: of one shape and dtype on all ranks.

    Raises:
        DistributedError: the ranks' calls, shapes or dtypes differ, or a rank does not answer.
        ShapeError: the list is too short or long, or holds tensors of another shape.
    """
    call = Call("all_gather", group, async_op)
    if call.outside:
        return None
    array = call.array(tensor, "tensor", writes=False)
    outputs = call.arrays(tensor_list, "tensor_list", array, writes=True)
    call.agree(shown(array))
    elements = flat(array)
    all_of_them = np.empty((call.group.size(), elements.size), elements.dtype)
    return call.move("Iallgather", elements, all_of_them.reshape(-1), lambda: _deal(outputs, all_of_them))


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into one, on every rank: joined along the first dimension, or stacked.

    The output is of shape (ranks * n, ...) or (ranks, n, ...) for tensors of shape (n, ...).
    """
    call = Call("all_gather_into_tensor", group, async_op)
    if call.outside:
        return None
    array = call.array(input_tensor, "input_tensor", writes=False)
    output = call.array(output_tensor, "output_tensor", writes=True)
    _check_whole(call, "output_tensor", output, array)
    call.agree(shown(array))
    whole = flat(output)
    return call.move("Iallgather", flat(array), whole, lambda: put_back(output, whole))


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a list of tensors, one for each rank, over the ranks; each rank gets the result for its own entry.

    Args:
        output: written by the call.
        input_list: one tensor of its shape and dtype for each rank.
        op: see `all_reduce`.
    """
    call = Call("reduce_scatter", group, async_op)
    if call.outside:
        return None
    array = call.array(output, "output", writes=True)
    inputs = call.arrays(input_list, "input_list", array, writes=False)
    return _scatter_reduced(call, array, rows(inputs).reshape(-1), op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce a tensor over the ranks; each rank gets its part along the first dimension.

    The input is of shape (ranks * n, ...) or (ranks, n, ...) for an output of shape (n, ...).
    """
    call = Call("reduce_scatter_tensor", group, async_op)
    if call.outside:
        return None
    array = call.array(output, "output", writes=True)
    whole = call.array(input, "input", writes=False)
    _check_whole(call, "input", whole, array)
    return _scatter_reduced(call, array, flat(whole), op)


def _scatter_reduced(call: Call, array: np.ndarray, whole: np.ndarray, op: ReduceOp) -> Work | None:
    how = call.reduction(op, array)
    call.agree(f"{shown(array)}, {op.name}")
    if call.alone:
        return call.run(follow=lambda: put_back(array, whole.copy()))
    sent = how.packed(whole)
    part = np.empty(array.size, sent.dtype)
    request = call.comm.Ireduce_scatter_block(sent, part, getattr(call.mpi, how.op))

    def finish(_kept: Any = sent) -> None:
        put_back(array, how.unpacked(part, call.group.size(), array.dtype))

    return call.run(request, finish)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write the tensors of all ranks into a list on rank `dst`; the others give no list."""
    call = Call("gather", group, async_op)
    if call.outside:
        return None
    root = call.root(dst, "dst")
    array = call.array(tensor, "tensor", writes=False)
    outputs = call.arrays(gather_list, "gather_list", array, writes=True) if call.group.me == root else None
    call.agree(f"{shown(array)}, dst={dst}")
    elements = flat(array)
    if outputs is None:
        return call.run(call.comm.Igather(as_bytes(elements), None, root))
    if call.alone:
        return call.run(follow=lambda: put_back(outputs[0], elements.copy()))
    all_of_them = np.empty((call.group.size(), elements.size), elements.dtype)
    request = call.comm.Igather(as_bytes(elements), as_bytes(all_of_them.reshape(-1)), root)
    return call.run(request, lambda: _deal(outputs, all_of_them))


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give each rank its tensor of a list on rank `src`; the others give no list."""
    call = Call("scatter", group, async_op)
    if call.outside:
        return None
    root = call.root(src, "src")
    array = call.array(tensor, "tensor", writes=True)
    inputs = call.arrays(scatter_list, "scatter_list", array, writes=False) if call.group.me == root else None
    call.agree(f"{shown(array)}, src={src}")
    if call.alone and inputs is not None:
        return call.run(follow=lambda: put_back(array, flat(inputs[0]).copy()))
    part = np.empty(array.size, array.dtype)
    sent = None if inputs is None else as_bytes(rows(inputs).reshape(-1))
    request = call.comm.Iscatter(sent, as_bytes(part), root)
    return call.run(request, functools.partial(follow_up, sent, lambda: put_back(array, part)))


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send a tensor of a list to each rank, and write what each rank sends into another list.

    All tensors are of one shape and dtype, on all ranks.
    """
    call = Call("all_to_all", group, async_op)
    if call.outside:
        return None
    first = call.array(next(iter(input_tensor_list), None), "input_tensor_list[0]", writes=False)
    inputs = call.arrays(input_tensor_list, "input_tensor_list", first, writes=False)
    outputs = call.arrays(output_tensor_list, "output_tensor_list", first, writes=True)
    call.agree(shown(first))
    sent = rows(inputs)
    received = np.empty_like(sent)
    return call.move("Ialltoall", sent.reshape(-1), received.reshape(-1), lambda: _deal(outputs, received))


def all_to_all_single(
    output: Tensor, input: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Cut a tensor along its first dimension into one equal part per rank, and send one part to each rank.

    Raises:
        ShapeError: input and output differ, or the parts are not equal.
    """
    call = Call("all_to_all_single", group, async_op)
    if call.outside:
        return None
    array = call.array(input, "input", writes=False)
    target = call.array(output, "output", writes=True)
    ranks = call.group.size()
    if target.shape != array.shape or target.dtype != array.dtype:
        call.refuse("output", shown(target), shown(array))
    if not array.shape or array.shape[0] % ranks:
        call.refuse("input", shown(array), f"a first dimension that {ranks} ranks divide")
    call.agree(shown(array))
    received = flat(target)
    return call.move("Ialltoall", flat(array), received, lambda: put_back(target, received))


def barrier(group: ProcessGroup | None = None, async_op: bool = False, device_ids: object = None) -> Work | None:
    """Wait until every rank has reached this call."""
    call = Call("barrier", group, async_op)
    if call.outside:
        return None
    call.agree("")
    return call.run(None if call.alone else call.comm.Ibarrier())


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until every rank has reached this call, at most `timeout` (in seconds or as a timedelta).

    Raises:
        DistributedError: a rank has not reached the call in time.
    """
    work = barrier(group, async_op=True)
    if work is not None:
        work.wait(timeout)


def _check_whole(call: Call, option: str, whole: np.ndarray, part: np.ndarray) -> None:
    """Refuse a tensor that does not hold one part for each rank."""
    ranks = call.group.size()
    lead = part.shape[0] if part.shape else 1
    shapes = {(ranks, *part.shape), (ranks * lead, *part.shape[1:])}
    if whole.shape not in shapes or whole.dtype != part.dtype:
        expected = f"{part.dtype} of shape {(ranks * lead, *part.shape[1:])} or {(ranks, *part.shape)}"
        call.refuse(option, shown(whole), expected)


def _deal(outputs: Sequence[np.ndarray], all_of_them: np.ndarray) -> None:
    for array, elements in zip(outputs, all_of_them, strict=True):
        array[...] = elements.reshape(array.shape)


__all__ = ["all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier"]
__all__ += ["broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor"]
__all__ += ["scatter"]
