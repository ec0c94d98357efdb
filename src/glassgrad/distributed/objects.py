"""Send plain Python objects between processes, without pickle, so that received data cannot run code.

Objects may be anything that `glassgrad.save` stores: tensors, arrays, numbers, strings, None, and lists, tuples and
dictionaries of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np

from glassgrad.distributed.calls import Call
from glassgrad.distributed.waiting import wait_until
from glassgrad.distributed.world import ProcessGroup

_HOLD = "object"  # objects are sent as {_HOLD: object}, so that a plain tensor or number can be sent too


def _encoded(value: Any) -> np.ndarray:
    from glassgrad import serialization  # imported with the first object; arrays do not need file formats

    file = BytesIO()
    serialization.save({_HOLD: [value]}, file)
    return np.frombuffer(file.getvalue(), np.uint8).copy()


def _decoded(content: np.ndarray) -> Any:
    from glassgrad import serialization

    return serialization.load(BytesIO(content.tobytes()))[_HOLD][0]


def _wait(call: Call, request: Any) -> None:
    wait_until(request.Test, call.group, call.name)


def _gathered(call: Call, value: Any) -> list[Any]:
    """Return the objects of all ranks, on every rank."""
    content = _encoded(value)
    if call.alone:
        return [_decoded(content)]
    sizes = np.empty(call.group.size(), np.int64)
    _wait(call, call.comm.Iallgather(np.array([content.size], np.int64), sizes))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    everything = np.empty(int(starts[-1]), np.uint8)
    _wait(call, call.comm.Iallgatherv(content, (everything, (sizes.tolist(), starts[:-1].tolist()))))
    return [_decoded(everything[low:high]) for low, high in pairwise(starts)]


def broadcast_object_list(
    object_list: list[Any], src: int = 0, group: ProcessGroup | None = None, device: object = None
) -> None:
    """Replace the objects of a list by those of the list on rank `src`.

    Args:
        object_list: of one length on all ranks; written by the call.
        src: the sender's rank in the world.
        device: accepted; everything is on the CPU.

    Raises:
        KindError: an object that cannot be stored without pickle.

    Example:
        >>> import glassgrad.distributed as dist
        >>> dist.init_process_group()
        >>> names = [{"run": "a", "steps": 3}]
        >>> dist.broadcast_object_list(names)
        >>> names
        [{'run': 'a', 'steps': 3}]
        >>> dist.destroy_process_group()
    """
    call = Call("broadcast_object_list", group, async_op=False)
    if call.outside:
        return
    root = call.root(src, "src")
    call.agree(f"{len(object_list)} objects, src={src}")
    content = _encoded(list(object_list)) if call.group.me == root else np.empty(0, np.uint8)
    if not call.alone:
        size = np.array([content.size], np.int64)
        _wait(call, call.comm.Ibcast(size, root))
        content = content if call.group.me == root else np.empty(int(size[0]), np.uint8)
        _wait(call, call.comm.Ibcast(content, root))
    if call.group.me != root:
        object_list[:] = _decoded(content)


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the objects of all ranks into a list, one for each rank, on every rank; see `broadcast_object_list`."""
    call = Call("all_gather_object", group, async_op=False)
    if call.outside:
        return
    call.one_for_each_rank(object_list, "object_list")
    call.agree("")
    object_list[:] = _gathered(call, obj)


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: ProcessGroup | None = None
) -> None:
    """Write the objects of all ranks into a list on rank `dst`; see `broadcast_object_list`."""
    call = Call("gather_object", group, async_op=False)
    if call.outside:
        return
    root = call.root(dst, "dst")
    if call.group.me == root:
        call.one_for_each_rank(object_gather_list, "object_gather_list")
    call.agree(f"dst={dst}")
    found = _gathered(call, obj)
    if object_gather_list is not None and call.group.me == root:
        object_gather_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int = 0,
    group: ProcessGroup | None = None,
) -> None:
    """Give each rank its object of a list on rank `src`, as the first entry of the output list."""
    call = Call("scatter_object_list", group, async_op=False)
    if call.outside:
        return
    root = call.root(src, "src")
    if call.group.me == root:
        call.one_for_each_rank(scatter_object_input_list, "scatter_object_input_list")
    call.agree(f"src={src}")
    mine = list(scatter_object_input_list or ()) if call.group.me == root else None
    scatter_object_output_list[:1] = [_gathered(call, mine)[root][call.group.me]]


__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"]
