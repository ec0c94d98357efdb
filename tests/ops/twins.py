"""PyTorch's result of each elementwise op: the oracle of the tests that iterate over the registry.

It is computed by PyTorch's function of the same name; without one, by an entry of `TWINS`; without both, by the formula
of the op's entry, evaluated with PyTorch's functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import scipy.special

from glassgrad.ops import formulas
from glassgrad.ops.core import Elementwise
from tests.ops.cases import params_of

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

F = torch.nn.functional
HOLDERS = (torch, torch.special, F)
TWINS: dict[str, Callable[..., Any]] = {
    "power": torch.pow,
    "clip": lambda x: torch.clamp(x, -1.0, 1.0),
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": lambda x: F.elu(x, 1.5),
    "log_sigmoid": F.logsigmoid,
    "gammaln": torch.lgamma,
    "polygamma": lambda x: torch.polygamma(1, x),
    "root": torch.sqrt,
    # PyTorch has neither; SciPy, which computes ours too, says what comes out at the edges.
    "betainc": lambda *x: torch.tensor(scipy.special.betainc(*(t.detach().numpy() for t in x))),
    "airy_slope": lambda x: torch.tensor(scipy.special.airy(x.detach().numpy())[1]),
}


def twin_of(prim: Elementwise) -> Callable[..., Any]:
    """Return PyTorch's counterpart of an op, with the parameters that the tests use."""
    if prim.name in TWINS:
        return TWINS[prim.name]
    for holder in HOLDERS:
        if hasattr(holder, prim.name):
            found: Callable[..., Any] = getattr(holder, prim.name)
            return found
    return by_formula(prim)


def by_formula(prim: Elementwise) -> Callable[..., Any]:
    """Return the formula of an op, computed with PyTorch's functions.

    Raises:
        LookupError: where the formula is words.
    """
    letters, params = formulas._argument_names(prim, prim.arity), params_of(prim)
    functions = {name: _function(name) for name in re.findall(r"[A-Za-z_]\w*", prim.formula)}
    known = {**{name: one for name, one in functions.items() if one is not None}, **params}

    def computed(*xs: Any) -> Any:
        return eval(prim.formula, {**known, **dict(zip(letters, xs, strict=True))})  # noqa: S307 - a text of the table

    try:
        computed(*[torch.full((2,), 0.5, dtype=torch.float64)] * prim.arity)
    except (SyntaxError, NameError, TypeError) as error:
        raise LookupError(
            f"{prim.name}: PyTorch has no function of this name, and its formula {prim.formula!r} cannot be computed "
            f"({error}); add its counterpart to TWINS in tests/ops/twins.py"
        ) from error
    return computed


def _function(name: str) -> Callable[..., Any] | None:
    return next((getattr(holder, name) for holder in HOLDERS if hasattr(holder, name)), None)
