"""All tensors that are alive, from the garbage collector's lists.

Those lists hold objects that other threads are just making. CPython refuses to finish a tuple that somebody else holds
a reference to (a SystemError, in the other thread), and a tensor may not have its array yet. So nothing here runs a
line of Python while it holds such a list: it is read in one call into C, which alone owns what it iterates over, and
other threads wait until that is over.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import chain, compress, tee
from typing import Any

from glassgrad.engine.tensor import Tensor

# Of the type, never of the object: proxies of other libraries do things when they are asked for their __class__.
_is_kind_of_tensor = Tensor.__subclasscheck__


def tensors(generation: int | None = None) -> list[Tensor]:
    """Return the tensors that are alive, or those in one generation of the collector."""
    return list(_only_tensors(*tee(chain.from_iterable(map(gc.get_objects, (generation,))))))


def _only_tensors(objects: Iterator[Any], same: Iterator[Any]) -> Iterator[Tensor]:
    return compress(objects, map(_is_kind_of_tensor, map(type, same)))


def ids(generation: int) -> set[int]:
    """Return the ids of all objects in one generation of the collector."""
    return set(map(id, chain.from_iterable(map(gc.get_objects, (generation,)))))
