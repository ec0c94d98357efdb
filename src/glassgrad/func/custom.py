"""Functions with custom derivatives: custom_vjp, custom_jvp (JAX's forms) and straight_through.

All build on `autograd.Function`, but arguments and results may be nested containers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import saved_tensors, tape, tree
from glassgrad.engine.function import Function
from glassgrad.engine.mode import enable_grad, is_grad_enabled, no_grad
from glassgrad.engine.node import record
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tree import Nested
from glassgrad.func.recording import place, zeros
from glassgrad.ops.core import Array
from glassgrad.ops.shape import alias_p


class _Arguments:
    """The arguments of one call, with the tensors separated from everything else."""

    def __init__(self, args: tuple[Any, ...], fixed: Sequence[int]) -> None:
        self.count = len(args)
        self.fixed = {number % max(len(args), 1): args[number] for number in fixed}
        leaves, self.structure = tree.flatten([x for at, x in enumerate(args) if at not in self.fixed])
        self.rest = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.holds = [isinstance(leaf, Tensor) for leaf in leaves]
        self.tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def moving(self, tensors: Sequence[Array]) -> list[Array]:
        """Return the arguments that are not fixed, with these tensors."""
        supply = iter(tensors)
        leaves = [next(supply) if held else other for held, other in zip(self.holds, self.rest, strict=True)]
        return list(tree.unflatten(self.structure, leaves))

    def all(self, tensors: Sequence[Array]) -> list[Array]:
        """Return all arguments, with these tensors."""
        supply = iter(self.moving(tensors))
        return [self.fixed[at] if at in self.fixed else next(supply) for at in range(self.count)]

    def pick(self, leaves: Sequence[Array]) -> list[Array]:
        """From one value per leaf of the arguments, keep those that belong to tensors."""
        return [leaf for leaf, held in zip(leaves, self.holds, strict=True) if held]


def _call(function: type[Function], rules: Any, arguments: _Arguments) -> Any:
    """Apply a Function that computes `rules` and return its result in its structure."""
    box: list[tree.Tree] = []
    result = function.apply(rules, arguments, box, *arguments.tensors)
    return tree.unflatten(box[-1], result if isinstance(result, tuple) else (result,))


def _flat_result(name: str, result: Nested, box: list[tree.Tree]) -> Nested:
    """Return the tensors of a result (without a tuple if it is one tensor), and put its structure into `box`."""
    leaves, structure = tree.flatten(result)
    box.append(structure)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise errors.OUTPUT_NOT_TENSOR(name=name, given=type(leaf).__name__, where=provenance.here())
    return leaves[0] if len(leaves) == 1 else tuple(leaves)


# --- custom_vjp ---------------------------------------------------------------------------------------


class custom_vjp:  # noqa: N801 - JAX's name
    """A function with a custom backward.

    `defvjp(forward, backward)` defines it: ``forward(*args)`` returns ``(result, residuals)`` and
    ``backward(*fixed, residuals, cotangent)`` one gradient (or None) for each argument that is not in
    `nondiff_argnums`. Under higher derivatives `forward` is differentiated as well.

    Example:
        >>> import glassgrad as gg
        >>> @gg.func.custom_vjp
        ... def clipped(x):  # the gradient is limited to 1
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (g.clip(-1, 1),))
        >>> gg.func.grad(lambda x: 5 * clipped(x))(gg.tensor(2.0))
        tensor(1.)
    """

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.forward: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.name = getattr(function, "__name__", "custom_vjp")

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Define the derivative."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any) -> Nested:
        if self.forward is None:
            raise errors.CUSTOM_RULE_MISSING(name=self.name, rule="defvjp", where=provenance.here())
        arguments = _Arguments(args, self.nondiff_argnums)
        if not is_grad_enabled() or not any(x.requires_grad for x in arguments.tensors):
            return self.function(*args)
        return _call(_CustomVjp, self, arguments)


class _CustomVjp(Function):
    @staticmethod
    def forward(ctx: Any, rules: custom_vjp, arguments: _Arguments, box: list[tree.Tree], *tensors: Tensor) -> Nested:
        ctx.rules, ctx.arguments, ctx.box = rules, arguments, box
        assert rules.forward is not None  # checked by the caller
        result, residuals = rules.forward(*arguments.all(tensors))
        flat = _flat_result(rules.name, result, box)
        leaves, structure = tree.flatten(residuals)
        ctx.residuals = structure, [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        ctx.save_for_backward(*tensors, *(leaf if isinstance(leaf, Tensor) else None for leaf in leaves))
        return flat

    @staticmethod
    def backward(ctx: Any, *cotangents: Array) -> Nested:
        rules, arguments = ctx.rules, ctx.arguments
        saved = ctx.saved_tensors
        inputs, kept = saved[: len(arguments.tensors)], saved[len(arguments.tensors) :]
        structure, others = ctx.residuals
        if any(x.requires_grad for x in inputs):
            # The residuals are functions of the inputs, which matters for derivatives of this gradient.
            _, residuals = rules.forward(*arguments.all(inputs))
        else:
            merged = [other if x is None else x for x, other in zip(kept, others, strict=True)]
            residuals = tree.unflatten(structure, merged)
        g = tree.unflatten(ctx.box[0], cotangents)
        fixed = [arguments.fixed[number] for number in sorted(arguments.fixed)]
        found = rules.backward(*fixed, residuals, g)
        return None, None, None, *_gradients(rules.name, found, arguments)


def _gradients(name: str, found: Array, arguments: _Arguments) -> list[Array]:
    """Return the gradients from a backward, one per tensor among the arguments."""
    structures = arguments.structure.children
    if not isinstance(found, tuple | list) or len(found) != len(structures):
        given = len(found) if isinstance(found, tuple | list) else type(found).__name__
        raise errors.CUSTOM_GRADIENTS(name=name, given=given, expected=len(structures), where=provenance.here())
    leaves: list[Array] = []
    for gradient, structure in zip(found, structures, strict=True):
        if gradient is None:
            leaves.extend([None] * structure.leaves)
        else:
            leaves.extend(tree.flatten_like(structure, gradient, f"{name}: the gradient"))
    return arguments.pick(leaves)


# --- custom_jvp ---------------------------------------------------------------------------------------


class custom_jvp:  # noqa: N801 - JAX's name
    """A function with a custom forward-mode rule, from which reverse mode follows.

    `defjvp(rule)` defines it: ``rule(*fixed, primals, tangents)`` returns ``(result, tangent of the result)``
    and is linear in the tangents. `defjvps` takes a rule ``(tangent, result, *args)`` for each argument.

    Example:
        >>> import glassgrad as gg
        >>> @gg.func.custom_jvp
        ... def f(x):
        ...     return x.sin()
        >>> f.defjvps(lambda t, y, x: 2 * x.cos() * t)  # twice the true derivative
        >>> gg.func.grad(f)(gg.tensor(0.0))
        tensor(2.)
    """

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.nondiff_argnums = tuple(nondiff_argnums)
        self.rule: Callable[..., Any] | None = None
        self.name = getattr(function, "__name__", "custom_jvp")

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Define the derivative; returns the rule, so that it can be used as a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Define the derivative by a rule for each argument; None for those without one."""

        def rule(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Nested:
            y = self(*primals)
            parts = [one(t, y, *primals) for one, t in zip(rules, tangents, strict=True) if one is not None]
            return y, functools.reduce(lambda a, b: tree.tree_map(lambda x, z: x + z, a, b), parts)

        self.rule = rule

    def __call__(self, *args: Any) -> Nested:
        if self.rule is None:
            raise errors.CUSTOM_RULE_MISSING(name=self.name, rule="defjvp", where=provenance.here())
        arguments = _Arguments(args, self.nondiff_argnums)
        if not is_grad_enabled() or not any(x.requires_grad for x in arguments.tensors):
            return self.function(*args)
        return _call(_CustomJvp, self, arguments)

    def tangent(self, arguments: _Arguments, primals: Sequence[Array], tangents: Sequence[Array]) -> list[Array]:
        """Return the tangents of the results."""
        fixed = [arguments.fixed[number] for number in sorted(arguments.fixed)]
        assert self.rule is not None  # checked by `__call__`
        _, found = self.rule(*fixed, tuple(arguments.moving(primals)), tuple(arguments.moving(tangents)))
        return tree.flatten(found)[0]


class _CustomJvp(Function):
    @staticmethod
    def forward(ctx: Any, rules: custom_jvp, arguments: _Arguments, box: list[tree.Tree], *tensors: Tensor) -> Nested:
        ctx.rules, ctx.arguments = rules, arguments
        ctx.save_for_backward(*tensors)
        return _flat_result(rules.name, rules.function(*arguments.all(tensors)), box)

    @staticmethod
    def jvp(ctx: Any, *tangents: Array) -> Nested:
        found = ctx.rules.tangent(ctx.arguments, ctx.saved_tensors, tangents[3:])
        return found[0] if len(found) == 1 else tuple(found)

    @staticmethod
    def backward(ctx: Any, *cotangents: Array) -> Nested:
        """Transpose the rule, which is linear in the tangents."""
        primals = ctx.saved_tensors
        again = is_grad_enabled()
        directions = [tape.alias(zeros(x)) if x.dtype.kind in "fcV" else zeros(x) for x in primals]
        with enable_grad():
            found = ctx.rules.tangent(ctx.arguments, primals, directions)
        pairs = [(place(t), g) for t, g in zip(found, cotangents, strict=True) if t.requires_grad]
        pulled = tape.backward(
            [root for root, _ in pairs],
            [g if again else g.array for _, g in pairs],
            retain_graph=again,
            create_graph=again,
            wanted=[t.node for t in directions if t.node is not None],
        )
        gradients = [pulled.get(t.node) if t.node is not None else None for t in directions]
        return None, None, None, *(None if g is None else tape.wrap(g) for g in gradients)


# --- straight-through ---------------------------------------------------------------------------------


def straight_through(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `function` with the gradient of the identity (Bengio et al. 2013): for rounding, sign, sampling.

    The result must have the shape of the argument.

    Example:
        >>> import glassgrad as gg
        >>> gg.func.value_and_grad(gg.func.straight_through(gg.round))(gg.tensor(1.7))
        (tensor(2.), tensor(1.))
    """

    @functools.wraps(function)
    def through(x: Nested) -> Nested:
        with no_grad():
            y = function(x)
        if not isinstance(x, Tensor) or not x.requires_grad or not is_grad_enabled():
            return y
        if not isinstance(y, Tensor) or y.shape != x.shape:
            given = y.shape if isinstance(y, Tensor) else type(y).__name__
            raise errors.STRAIGHT_SHAPE(given=given, expected=x.shape, where=provenance.here())
        array = y.array if y.dtype == x.dtype else y.detach().astype(x.dtype).array
        frame = provenance.user_frame(1)
        parent = place(x)
        node = record(alias_p, (parent,), (None, parent), {}, array, frame.f_code, frame.f_lasti)
        if type(array) is not np.ndarray:
            node.levels = tape.levels_of(y)
        saved_tensors.show(node)
        return make(array, node, True)

    return through
