"""All tensors that are alive, from the garbage collector's lists.

Those lists contain objects that other threads are still constructing. CPython raises a SystemError in the other thread
if it finishes a tuple that someone else references, and a tensor may not have its array yet. So no Python code here
runs while such a list is held: one call into C reads and owns it, and other threads wait for the end of that call.
"""

from __future__ import annotations

import gc
from itertools import chain, compress, islice, tee

from glassgrad.engine.tensor import Tensor

# Applied to the type, never to the object: reading `__class__` of other libraries' proxies can have side effects.
_is_kind_of_tensor = Tensor.__subclasscheck__


def tensors(generation: int | None = None) -> list[Tensor]:
    """Return the tensors that are alive, or those in one generation of the collector."""
    # Make two iterators over one list after the list exists: objects made before are in the list, and a tee that
    # contains itself is a cycle, which would keep everything alive until the next collection.
    pair = chain.from_iterable(map(tee, map(gc.get_objects, (generation,))))
    objects, same = (chain.from_iterable(islice(pair, 1)) for _ in range(2))
    chosen = map(_is_kind_of_tensor, map(type, same))
    # The last two iterators are exhausted; reading them once more makes them release the list.
    return list(chain(compress(objects, chosen), chosen, pair))


def ids(generation: int) -> set[int]:
    """Return the ids of all objects in one generation of the collector."""
    return set(map(id, chain.from_iterable(map(gc.get_objects, (generation,)))))
