"""Messages from one rank to another: `send`, `recv`, and the non-blocking `isend`, `irecv`."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed.calls import Call, as_bytes, flat, follow_up, put_back
from glassgrad.distributed.waiting import Work, wait_until
from glassgrad.distributed.world import ProcessGroup
from glassgrad.engine.tensor import Tensor


def send(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> None:
    """Send a tensor to rank `dst`, which calls `recv`; return when its memory may be written again.

    Raises:
        ArgumentError: there is no such rank.
    """
    work = isend(tensor, dst, group, tag)
    if work is not None:
        work.wait()


def isend(tensor: Tensor, dst: int, group: ProcessGroup | None = None, tag: int = 0) -> Work | None:
    """Begin to send a tensor to rank `dst`; it must not be written before ``wait()`` of the result returns."""
    call = Call("send", group, async_op=True)
    if call.outside:
        return None
    target = _other(call, dst, "dst")
    elements = flat(call.array(tensor, "tensor", writes=False))
    request = call.comm.Isend(as_bytes(elements), target, tag)
    return call.run(request, functools.partial(follow_up, elements, lambda: None))


def recv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> int:
    """Receive a tensor from rank `src`, or from any; return the sender's rank in the world.

    Args:
        tensor: written by the call; has the shape and dtype of the tensor sent.
        src: the rank in the world; None for any.
        tag: the number that `send` was given.

    Raises:
        ShapeError: the message has another size.
    """
    call = Call("recv", group, async_op=False)
    if call.outside:
        return -1
    array = call.array(tensor, "tensor", writes=True)
    status = call.mpi.Status() if call.comm is not None else None
    source = _source(call, src)
    found: list[Any] = []

    def arrived() -> bool:
        message = call.comm.Improbe(source, tag, status)
        if message is not None:
            found.append(message)
        return message is not None

    wait_until(arrived, call.group, "recv")
    assert status is not None
    sender: int = call.group.ranks[status.Get_source()]
    _check_size(call, array, status.Get_count(call.mpi.BYTE), sender)
    elements = flat(array)
    wait_until(found[0].Irecv(as_bytes(elements)).Test, call.group, "recv")
    put_back(array, elements)
    return sender


def irecv(tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, tag: int = 0) -> Work | None:
    """Begin to receive a tensor; it is ready after ``wait()`` of the result, which raises as `recv` does."""
    call = Call("recv", group, async_op=True)
    if call.outside:
        return None
    array = call.array(tensor, "tensor", writes=True)
    source = _source(call, src)
    elements = flat(array)
    request, status = call.comm.Irecv(as_bytes(elements), source, tag), call.mpi.Status()

    def arrived() -> bool:
        try:
            return bool(request.Test(status))
        except call.mpi.Exception as error:
            if error.Get_error_class() != call.mpi.ERR_TRUNCATE:
                raise
            raise _wrong_size(call, array, f"more than {array.nbytes}", "another") from None

    def follow() -> None:
        _check_size(call, array, status.Get_count(call.mpi.BYTE), call.group.ranks[status.Get_source()])
        put_back(array, elements)

    call.stages.append((arrived, follow))
    return call.run()


def _source(call: Call, src: int | None) -> int:
    return int(call.mpi.ANY_SOURCE) if src is None and not call.alone else _other(call, src, "src")


def _other(call: Call, rank: int | None, option: str) -> int:
    """Return the rank within the group; refuse this process itself, because that would wait forever."""
    if rank is None or call.root(rank, option) == call.group.me:
        ranks = ", ".join(str(one) for one in call.group.ranks if one != call.global_rank) or "there is no other"
        raise errors.NO_SUCH_RANK(call=call.name, option=option, given=rank, ranks=ranks, where=provenance.here())
    return call.root(rank, option)


def _check_size(call: Call, array: np.ndarray, given: int, sender: int) -> None:
    if given != array.nbytes:
        raise _wrong_size(call, array, given, sender)


def _wrong_size(call: Call, array: np.ndarray, given: Any, sender: Any) -> Exception:
    own: dict[str, object] = {"dtype": array.dtype, "shape": tuple(array.shape), "expected": array.nbytes}
    where = provenance.here()
    return errors.MESSAGE_SIZE(rank=call.global_rank, source=sender, given=given, where=where, **own)


__all__ = ["irecv", "isend", "recv", "send"]
