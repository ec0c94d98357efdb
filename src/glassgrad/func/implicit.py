"""Implicit differentiation: the derivative of a solution without the derivative of the solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tree
from glassgrad.engine.function import Function
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.tree import Nested
from glassgrad.func.forward import jvp
from glassgrad.func.reverse import jacrev, vjp
from glassgrad.ops.core import Array
from glassgrad.ops.shape import cat
from glassgrad.ops.solve import solve as solve_matrix

Solver = Callable[[Callable[[Any], Any], Any], Any]


def custom_root(
    function: Callable[[Any], Any],
    initial_guess: Nested,
    solve: Solver,
    tangent_solve: Solver | None = None,
    has_aux: bool = False,
) -> Nested:
    """Return x with ``function(x) = 0``, found by `solve` and differentiable in everything `function` closes over.

    From f(x, p) = 0 follows dx = -(df/dx)^-1 (df/dp) dp (the implicit function theorem), so neither mode
    differentiates through `solve`.

    Args:
        function: maps x to a residual of the same structure and shapes; it closes over everything else that
            it depends on.
        initial_guess: the starting point of `solve`: a tensor, or a container of tensors.
        solve: ``solve(function, initial_guess)`` returns the root; with `has_aux` ``(root, anything)``.
        tangent_solve: ``tangent_solve(linear, b)`` returns v with ``linear(v) = b``; by default the matrix
            of `linear` is built and factorised, which is fine for up to a few hundred elements.

    Example:
        >>> import glassgrad as gg
        >>> def square_root(a):
        ...     def newton(f, x):
        ...         for _ in range(20):
        ...             x = x - f(x) / (2 * x)
        ...         return x
        ...     return gg.func.custom_root(lambda x: x**2 - a, gg.tensor(1.0), newton)
        >>> gg.func.value_and_grad(square_root)(gg.tensor(4.0))
        (tensor(2.), tensor(0.25))
    """
    with no_grad():
        found = solve(function, initial_guess)
        root, aux = found if has_aux else (found, None)
    root = tree.tree_map(lambda x: x.detach(), root)
    leaves, structure = tree.flatten(root)
    # One evaluation at the root finds the tensors that the residual depends on.
    residuals = tree.flatten_like(structure, function(root), "custom_root: the residual")
    for x, r in zip(leaves, residuals, strict=True):
        if r.shape != x.shape:
            raise errors.ROOT_SHAPE(given=r.shape, expected=x.shape, where=provenance.here())
    problem = _Problem(function, structure, tangent_solve)
    result = _Root.apply(problem, tuple(leaves), *residuals)
    solution = tree.unflatten(structure, result if isinstance(result, tuple) else (result,))
    return (solution, aux) if has_aux else solution


class _Problem:
    """The linear equations at the root, in the structure the user chose."""

    def __init__(self, function: Callable[[Any], Any], structure: tree.Tree, solver: Solver | None) -> None:
        self.function, self.structure = function, structure
        self.solver = solver or dense_solve

    def forward(self, root: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
        """Return v with J v = b."""
        at = self._together(root)
        return self._solved(lambda v: jvp(self.function, (at,), (v,))[1], b)

    def transposed(self, root: Sequence[Tensor], b: Sequence[Tensor]) -> list[Tensor]:
        """Return u with Jᵀ u = b."""
        _, pull = vjp(self.function, self._together(root))
        return self._solved(lambda u: pull(u)[0], b)

    def _together(self, leaves: Sequence[Tensor]) -> Nested:
        return tree.unflatten(self.structure, leaves)

    def _solved(self, linear: Callable[[Any], Any], b: Sequence[Tensor]) -> list[Tensor]:
        return tree.flatten_like(self.structure, self.solver(linear, self._together(b)), "custom_root: tangent_solve")


class _Root(Function):
    @staticmethod
    def forward(ctx: Any, problem: _Problem, root: tuple[Tensor, ...], *residuals: Tensor) -> Nested:
        ctx.problem = problem
        outputs = tuple(x.detach() for x in root)
        ctx.save_for_backward(*outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Nested:
        return None, None, *(-u for u in ctx.problem.transposed(ctx.saved_tensors, cotangents))

    @staticmethod
    def jvp(ctx: Any, *tangents: Array) -> Nested:
        moved = tuple(-v for v in ctx.problem.forward(ctx.saved_tensors, tangents[2:]))
        return moved[0] if len(moved) == 1 else moved


def dense_solve(linear: Callable[[Any], Any], b: Nested) -> Nested:
    """Solve ``linear(v) = b`` by building the matrix: the default of `custom_root`."""
    leaves, structure = tree.flatten(b)
    sizes = [math.prod(x.shape) for x in leaves]

    def parted(v: Tensor) -> Nested:
        parts = [part.reshape(x.shape) for part, x in zip(v.split(sizes), leaves, strict=True)]
        return tree.unflatten(structure, parts)

    def flat(v: Tensor) -> Tensor:
        found = tree.flatten(linear(parted(v)))[0]
        joined: Tensor = cat([y.reshape(-1) for y in found], 0)
        return joined

    right = cat([x.reshape(-1) for x in leaves], 0)
    return parted(solve_matrix(jacrev(flat)(right.detach() * 0), right))
