"""Calls of primitives that Python computes between two turns of native code.

They are separate from `assemble`, because a step from disk needs them but no stages before machine code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from glassgrad.compile.ir.graph import Params, Var
from glassgrad.compile.native.executable import Block, Given, HostCall
from glassgrad.compile.plan.indexing.indices import row_strides
from glassgrad.ops.core import Array, Primitive


def host_call(
    primitive: Primitive,
    params: Params,
    operands: tuple[Given, ...],
    results: tuple[Block, ...],
    free: frozenset[Var],
) -> HostCall:
    """Return the call of a primitive in Python; it may place those of its arrays that are in `free` anywhere."""
    bind = getattr(primitive, "bind", None)
    if bind is not None and (bound := bind(params)) is not None:
        whole = [one for one in (*operands, *results) if isinstance(one, tuple) and _is_whole(one)]
        movable = free.intersection(var for var, *_ in whole)
        return HostCall(bound.run, operands, results, True, bound.attach, movable, primitive.name, params)
    into = getattr(primitive, "compute_into", None)
    if into is not None:
        fill = functools.partial(_fill, into, params)
        return HostCall(fill, operands, results, fills=True, op=primitive.name, params=params)
    return HostCall(_host_function(primitive, params), operands, results, op=primitive.name, params=params)


def _fill(into: Callable[..., None], params: Params, outputs: Sequence[Array], *arrays: Array) -> None:
    into(outputs, *arrays, **params)


def _is_whole(block: Block) -> bool:
    var, offset, shape, strides = block
    return offset == 0 and shape == var.shape and tuple(strides) == tuple(row_strides(shape))


def _host_function(primitive: Primitive, params: Params) -> Callable[..., Array]:
    return lambda *arrays: primitive.compute(arrays, params)
