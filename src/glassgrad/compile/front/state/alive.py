"""All tensors that are alive, from the garbage collector's lists.

Those lists hold objects that other threads are just making. CPython refuses to finish a tuple that somebody else holds
a reference to (a SystemError, in the other thread), and a tensor may not have its array yet. So nothing here runs a
line of Python while it holds such a list: it is read in one call into C, which alone owns what it iterates over, and
other threads wait until that is over.
"""

from __future__ import annotations

import gc
from itertools import chain, compress, islice, tee

from glassgrad.engine.tensor import Tensor

# Of the type, never of the object: proxies of other libraries do things when they are asked for their __class__.
_is_kind_of_tensor = Tensor.__subclasscheck__


def tensors(generation: int | None = None) -> list[Tensor]:
    """Return the tensors that are alive, or those in one generation of the collector."""
    # Two iterators over the one list, made after it, since what is made before it is in it: a tee that found itself
    # would be a cycle, and hold everything until the next collection.
    pair = chain.from_iterable(map(tee, map(gc.get_objects, (generation,))))
    objects, same = (chain.from_iterable(islice(pair, 1)) for _ in range(2))
    chosen = map(_is_kind_of_tensor, map(type, same))
    # The last two give nothing more. Asked for it, they let go of the list.
    return list(chain(compress(objects, chosen), chosen, pair))


def ids(generation: int) -> set[int]:
    """Return the ids of all objects in one generation of the collector."""
    return set(map(id, chain.from_iterable(map(gc.get_objects, (generation,)))))
