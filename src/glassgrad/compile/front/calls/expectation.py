"""The memory of a program before it is traced: what a trace depends on is known once the function's reach is.

A second process finds the code of a step by its graph, after the trace. By what the trace will read it finds how much
memory the step needs earlier, so that another core can touch that memory meanwhile. Being wrong costs this time and
changes nothing: the program looks at the size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from glassgrad.compile.front.calls.cached_trace import signature
from glassgrad.compile.front.state.edges import is_constant
from glassgrad.compile.front.state.reach import Reach

if TYPE_CHECKING:
    from glassgrad.compile.native.ahead import Expected


def expected(found: Reach, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Expected:
    """Begin to touch the memory that a native program has needed in another process.

    Args:
        found: what the function reads.
        args, kwargs: the call.
        options: of the program, as far as its memory depends on them.
    """
    # Native code is loaded only where there is to be some.
    from glassgrad.compile.native import cache
    from glassgrad.compile.native.ahead import Expected
    from glassgrad.compile.native.runtime import available_cores

    constants = sorted((edge.path, repr(edge.value)) for edge in found.edges if is_constant(edge.value))
    tensors = [(path, tensor.array.shape, str(tensor.array.dtype)) for tensor, path in found.tensors.values()]
    codes = [(code.co_name, code.co_code, code.co_names) for code in found.codes]
    call = signature(args, kwargs)[0]
    return Expected(cache.key_of("space", available_cores(), options, call, constants, tensors, codes))
