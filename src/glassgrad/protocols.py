"""NumPy's protocols: what happens when a NumPy function meets a Tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad import errors, provenance
from glassgrad.interpreter import apply
from glassgrad.ops.core import REGISTRY
from glassgrad.tensor import Tensor, make

# NumPy's function -> our primitive: those whose forward is that very function.
UFUNCS = {
    getattr(np, prim.forward): prim
    for prim in REGISTRY.values()
    if isinstance(prim.forward, str) and isinstance(getattr(np, prim.forward, None), np.ufunc)
} | {np.matmul: REGISTRY["matmul"], np.reciprocal: REGISTRY["reciprocal"], np.power: REGISTRY["power"]}


def ufunc(function: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Serve `Tensor.__array_ufunc__`: record it if we have the op, never lose a gradient."""
    tracked = any(isinstance(x, Tensor) and x._tracks for x in inputs)
    out = kwargs.get("out")
    prim = UFUNCS.get(function)
    if method == "__call__" and prim is not None and not kwargs:
        return apply(prim, inputs, {})
    if tracked:
        call = f"np.{function.__name__}" + ("" if method == "__call__" else f".{method}") + ("(out=...)" if out else "")
        raise errors.ASARRAY_TRACKED(call=call, what="a tensor", name="t", where=provenance.here(1))
    plain = [x.array if isinstance(x, Tensor) else x for x in inputs]
    if out:
        kwargs["out"] = tuple(x.array if isinstance(x, Tensor) else x for x in out)
    result = getattr(function, method)(*plain, **kwargs)
    if out:
        return out[0]
    if isinstance(result, tuple):
        return tuple(make(np.asarray(part), None, False) for part in result)
    return make(np.asarray(result), None, False)
