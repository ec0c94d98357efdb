"""Check that all ranks hold the same model, and copy that of the first rank to all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.distributed.calls import as_bytes, flat, put_back, shown
from glassgrad.distributed.waiting import wait_until
from glassgrad.distributed.world import ProcessGroup
from glassgrad.engine.tensor import Tensor

_WORDS = 400  # bytes of a rank's description of its first difference


def check_same(named: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Raise on every rank when names, shapes or dtypes of tensors differ from those of the first rank."""
    if group.size() == 1:
        return
    own = [f"'{name}' is {shown(tensor.array)}, requires_grad={tensor.requires_grad}" for name, tensor in named]
    first = _text_of_first("\n".join(own), group).split("\n")
    pairs = zip_longest(own, first, fillvalue="missing")
    difference = next((f"{mine}; on rank {group.ranks[0]}: {wanted}" for mine, wanted in pairs if mine != wanted), "")
    words = np.frombuffer(difference.encode()[:_WORDS].ljust(_WORDS), np.uint8)
    everyone = np.empty((group.size(), _WORDS), np.uint8)
    wait_until(group.comm.Iallgather(words, everyone).Test, group, "DistributedDataParallel")
    said = [bytes(row).decode(errors="replace").strip() for row in everyone]
    if any(said):
        what = "; ".join(f"rank {rank}: {text}" for rank, text in zip(group.ranks, said, strict=True) if text)
        raise errors.PARAMETERS_DIFFER(rank=group.ranks[group.me], what=what, where=provenance.here())


def _text_of_first(text: str, group: ProcessGroup) -> str:
    content = np.frombuffer(text.encode(), np.uint8)
    size = np.array([content.size])
    wait_until(group.comm.Ibcast(size, 0).Test, group, "DistributedDataParallel")
    if group.me != 0:
        content = np.empty(int(size[0]), np.uint8)
    wait_until(group.comm.Ibcast(content, 0).Test, group, "DistributedDataParallel")
    return content.tobytes().decode()


def take_from_first(tensors: Sequence[Tensor], group: ProcessGroup) -> None:
    """Copy the values of the first rank's tensors to all ranks."""
    if group.size() == 1:
        return
    arrays: list[Any] = [tensor.array for tensor in tensors]
    contents = [flat(array) for array in arrays]
    requests = [group.comm.Ibcast(as_bytes(content), 0) for content in contents]
    for request, array, content in zip(requests, arrays, contents, strict=True):
        wait_until(request.Test, group, "DistributedDataParallel")
        put_back(array, content)
