"""Primitives: differentiable functions with their rules, all called through one method.

`Primitive.__call__` hands the call to the interpreter of the highest kind among its arguments (`Tensor`, then the
batched arrays of `vmap`, then `Symbol`). Each of four kinds of primitive states a minimum that determines the rest:

=============  =========================================  =======================================
kind           states                                     derived
=============  =========================================  =======================================
`Elementwise`  forward, one local derivative an argument  vjp, jvp, shape, batching, fused code
`Linear`       forward, transpose                         vjp; jvp is the op itself
`Custom`       forward, vjp, jvp                          --
`Fused`        forward with residuals, vjp, decompose     jvp, higher orders, batching, lowering
=============  =========================================  =======================================

In rules: ``g`` cotangent, ``t`` tangent, ``y`` output, ``x`` inputs. A rule is written in operators and other
primitives, so it serves plain arrays, Tensors (higher order) and Symbols (compilation). An unsaved argument reaches the
rule as a placeholder with only shape and dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from types import MethodType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.ops import promotion
from glassgrad.ops.complex_input import refuse_complex
from glassgrad.ops.kernels import ways
from glassgrad.ops.kernels.blocks import entitle, natively, product_in_blocks
from glassgrad.ops.kernels.choose import choose, numbers_of
from glassgrad.ops.samples import Domain

_ndarray, _STEP_FROM = np.ndarray, ways.least("step")
Array = ways.Array
Rule = Callable[..., Any]

REGISTRY: dict[str, Primitive] = {}
PRIMITIVES: dict[str, Primitive] = {}  # all primitives that a trace may name: the table, and a few with separate tests


class Interpreter(NamedTuple):
    """How one kind of argument evaluates a primitive; the highest rank among the arguments decides."""

    rank: int
    apply: Callable[[Primitive, tuple[Any, ...], dict[str, Any]], Any]


INTERPRETERS: dict[type, Interpreter] = {}
HIGHEST = 100  # the rank of Tensors

# Types that belong neither to an interpreter nor to another array library.
_PLAIN = frozenset({_ndarray, float, int, bool, np.float32, np.float64, np.int64, np.bool_})


class Aval(NamedTuple):
    """An abstract value: the shape and dtype of an array, without its numbers."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)


class Primitive:
    """A differentiable function, its rules, and the samples that the generic tests draw.

    Attributes:
        name: NumPy's name, lowercase; the key in `REGISTRY`.
        formula, derivative: what it computes and its derivative, as formulas in x (or a, b).
        notes: for the op table: a source, or a difference from PyTorch's function.
        tolerance: how much larger than usual the error of finite differences may be.
        evaluate: the function on NumPy arrays.
        saves_y, saves_x: whether the tape keeps output and inputs for the rules.
        saves_from, saves_to: keep only the arguments from this position on (usually index arrays), or before it; the
            others reach the rules as placeholders, even if they have a gradient.
        vjps: per argument ``rule(g, y, *x, **params)``, None where no gradient flows; or None when `joint_vjp`
            ``(g, needs, y, *x, **params) -> sequence`` serves all arguments at once.
        jvps: per argument ``rule(t, y, *x, **params)``; or None when `joint_jvp` ``(tangents, y, *x, **params)`` does.
        indices: for an op that only moves elements, ``rule(at, x, **params)`` returns the position of an element in the
            first argument from its position in the result, one index per dimension.
        write_back: for a view, ``rule(x, view, assign, **params)`` returns the first argument after a write to the
            view, where ``assign(x, value, arrays, spec)`` is x with x[index] = value. None refuses the write.
        is_view: whether the result may share memory with the first argument.
        takes_complex: whether value and rules are correct for complex numbers, which are otherwise refused.
        visit: for the few primitives that need special treatment in the backward walk, ``visit(walk, node, g)``; if it
            returns `NotImplemented`, the usual rules apply.
    """

    kind: ClassVar[str] = "primitive"
    decompose: Rule | None = None
    vjp_in_ops: Rule | None = None
    companions: int = 0
    saves_results = False  # whether the residuals are the results, so that a trace can hold the op as one instruction
    visit: Rule | None = None

    def __init__(
        self,
        name: str,
        forward: str | Callable[..., Any],
        *,
        saves: Sequence[str] = (),
        saves_from: int | None = None,
        saves_to: int | None = None,
        sample_params: Mapping[str, Any] | None = None,
        multiple: bool = False,
        shape: Callable[..., tuple[Any, ...]] | None = None,
        batch: Rule | None = None,
        indices: Rule | None = None,
        write_back: Rule | None = None,
        takes_complex: bool = False,
        register: bool = True,
    ) -> None:
        if register:
            if name in REGISTRY:
                raise KeyError(f"primitive {name!r} is declared twice")
            REGISTRY[name] = PRIMITIVES[name] = self
        self.name = self.__name__ = self.__doc__ = name
        self.forward, self.formula, self.derivative, self.notes = forward, "", "", ""
        self.evaluate: Callable[..., Any] = _numpy_forward(forward)
        self.saves_y, self.saves_x = "y" in saves, "x" in saves
        self.saves_from, self.saves_to = saves_from, saves_to
        # Whether a walk has anything to free; a node that saved nothing can be walked again.
        self.frees = bool(saves) or saves_from is not None or saves_to is not None
        self.samples: Sequence[Any] = ()
        self.edge: tuple[float, ...] = ()
        self.sample_params, self.tolerance = dict(sample_params or {}), 1.0
        self.multiple, self.shape_rule, self.batch = multiple, shape, batch
        self.indices, self.write_back, self.is_view = indices, write_back, write_back is not None
        self.takes_complex = takes_complex or not register  # unregistered primitives run user code
        self.vjps: tuple[Rule | None, ...] | None = None
        self.jvps: tuple[Rule | None, ...] | None = None
        self.joint_vjp: Rule | None = None
        self.joint_jvp: Rule | None = None

    def describe(
        self, formula: str, derivative: str = "", *domains: Domain, edge: Sequence[float] = (), notes: str = ""
    ) -> Self:
        """Describe the primitive for the op table and the generic tests; return it.

        An elementwise primitive is sampled from `domains`, one for each argument; others set `samples`, sample calls.
        At the numbers in `edge`, the tests compare function and derivative with PyTorch's.
        """
        self.__doc__ = f"{self.name}: {formula}"
        self.formula, self.derivative, self.notes = formula, derivative, notes
        self.samples, self.edge = domains, tuple(edge)
        return self

    def decomposed(self, *args: Any, **params: Any) -> Any:
        """Return the differentiable results of a fused primitive's decomposition."""
        assert self.decompose is not None
        y = self.decompose(*args, **params)
        return y[: len(y) - self.companions] if self.multiple else y[0] if self.companions else y

    def __call__(self, *args: Any, **params: Any) -> Any:
        for arg in args:
            if type(arg) not in _PLAIN:
                interpreter = INTERPRETERS.get(type(arg))
                if interpreter is not None and interpreter[0] >= HIGHEST:
                    return interpreter[1](self, args, params)
                return self._dispatch(args, params)
        if self.decompose is None and self.takes_complex:
            return self.evaluate(*args, **params)
        return self._plainly(args, params)

    def _plainly(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.takes_complex:
            refuse_complex(self.name, args)
        return self.compute(args, params)

    def _dispatch(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Hand a call to the interpreter of the highest kind among its arguments."""
        chosen = None
        for arg in args:
            interpreter = INTERPRETERS.get(type(arg))
            if interpreter is not None and (chosen is None or interpreter.rank > chosen.rank):
                chosen = interpreter
        return self._plainly(args, params) if chosen is None else chosen.apply(self, args, params)

    @cached_property
    def traits(self) -> tuple[Any, ...]:
        """The fields that recording needs, in one attribute, because each look-up on differing classes is slow."""
        part = None if self.saves_from is self.saves_to is None else (self.saves_from or 0, self.saves_to)
        keeps = self.saves_x, self.saves_y, part
        return promotion.evaluate_of(self), self.decompose, self.special, *keeps, self.is_view, self.takes_complex

    @cached_property
    def special(self) -> bool:
        """Whether a call returns anything but one array that may be tracked."""
        return self.companions > 0 or self.multiple or not self.differentiable

    @cached_property
    def differentiable(self) -> bool:
        """Whether any argument can have a gradient."""
        return self.joint_vjp is not None or any(rule is not None for rule in self.vjps or ())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:  # as a class attribute it is a method
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.formula}>"

    def compute(self, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """Evaluate on plain arrays: NumPy's, or those of another array namespace."""
        for arg in args:
            if type(arg) is not np.ndarray and hasattr(arg, "__array_namespace__") and not isinstance(arg, np.generic):
                return self.compute_in(arg.__array_namespace__(), args, params)
        return self.evaluate(*args, **params)

    def within(self, namespace: Any, *args: Any, **params: Any) -> Any:
        """Compute inside another op's forward, with the namespace's function of this name if it exists."""
        own = self.evaluate if namespace is np else getattr(namespace, self.name, None)
        return self.compute_in(namespace, args, params) if own is None else own(*args, **params)

    def compute_in(self, namespace: Any, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        if isinstance(self.forward, str):
            return getattr(namespace, self.forward)(*args, **params)
        return self.forward(namespace, *args, **params)

    def abstract(self, *args: Any, **params: Any) -> Any:
        """Return the `Aval` (or tuple of them) of the result for arguments that have shape and dtype."""
        if self.shape_rule is not None:
            found = self.shape_rule(*args, **params)
            if isinstance(found, Aval) or self.multiple:  # the rule states the dtypes as well
                return found
            dtypes = [np.empty(0, arg.dtype) if hasattr(arg, "dtype") else arg for arg in args]
            return Aval(found, np.result_type(*dtypes))
        result = self.compute(tuple(_hollow(arg) for arg in args), params)
        if self.multiple:
            return tuple(Aval(part.shape, part.dtype) for part in result)
        return Aval(np.shape(result), np.asarray(result).dtype)


def _numpy_forward(forward: str | Callable[..., Any]) -> Callable[..., Any]:
    return getattr(np, forward) if isinstance(forward, str) else functools.partial(forward, np)


def _hollow(arg: Any) -> Any:
    """Return an array of ones of the argument's shape and dtype that takes no memory."""
    return np.broadcast_to(np.ones((), arg.dtype), arg.shape) if hasattr(arg, "dtype") else arg


# --- elementwise --------------------------------------------------------------------------------


class select:  # noqa: N801 - reads as a function where entries use it
    """A partial that is 1 where the mask holds and 0 elsewhere; the cotangent is selected, not scaled.

    Selecting keeps 0 * inf out of the gradient, as PyTorch does. With ``keep=False`` the mask marks where the partial
    is 0 instead; the choice matters for NaN, which compares false. `natively` computes the product for large arrays.
    """

    def __init__(self, mask: Rule, keep: bool = True, natively: Rule | None = None) -> None:
        self.mask, self.keep, self.natively = mask, keep, natively


Partial = Rule | select | float | None


class Elementwise(Primitive):
    """y[i] = f(x1[i], x2[i], ...) with NumPy's broadcasting.

    `partials` holds the local derivative with respect to each argument: a function ``(y, *x)``, a `select` mask, a
    number, or None where no gradient flows. Vjp and jvp are the product with it; the tape undoes broadcasting.
    `native` says that native code is much faster than NumPy.
    """

    kind = "elementwise"

    def __init__(
        self,
        name: str,
        forward: str | Callable[..., Any],
        partials: Sequence[Partial],
        *,
        scalar: str | None = None,
        native: bool = False,
        **facts: Any,
    ) -> None:
        super().__init__(name, forward, **facts)
        entitle(forward, name)
        self.evaluate = natively(self.evaluate, name) if native else self.evaluate
        self.partials, self.arity = tuple(partials), len(partials)
        self._dtypes: dict[Any, Any] = {}
        self.scalar = scalar or name
        self.vjps = self.jvps = tuple([_chain(one, self) for one in self.partials])

    def abstract(self, *args: Any, **params: Any) -> Aval:
        shapes = [arg.shape for arg in args if hasattr(arg, "shape")]
        shape = shapes[0] if len({*shapes}) == 1 else np.broadcast_shapes(*shapes)
        if params:
            return Aval(shape, self._dtype(args, params))
        # Only the type of a Python number matters, except for an int, whose value may not fit the dtype.
        key = tuple([arg.dtype if hasattr(arg, "dtype") else arg if type(arg) is int else type(arg) for arg in args])
        if (dtype := self._dtypes.get(key)) is None:
            dtype = self._dtypes[key] = self._dtype(args, params)
        return Aval(shape, dtype)

    def _dtype(self, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        """Return the result's dtype, found by computing with arrays of one element."""
        if self.arity == 1 and callable(self.partials[0]) and not params and args[0].dtype.kind in "fV":
            return args[0].dtype  # true for every differentiable op, and avoids importing SciPy
        tiny = [np.ones((1,) * min(len(arg.shape), 1), arg.dtype) if hasattr(arg, "dtype") else arg for arg in args]
        return np.asarray(self.compute(tuple(tiny), params)).dtype


def _chain(partial: Partial, prim: Elementwise) -> Rule | None:  # noqa: C901, PLR0911 - one return a form of partial
    """Return the rule ``(c, y, *x)`` that multiplies a cotangent or tangent by the local derivative."""
    if partial is None:
        return None
    if isinstance(partial, select):
        return _selecting(partial.mask, partial.keep, partial.natively)
    if callable(partial):
        if (blocked := product_in_blocks(partial, prim.arity, prim.saves_x)) is not None:
            return blocked
    elif partial == 0:
        # Return a zero gradient instead of None, so that the walk reaches the inputs of step functions, as in PyTorch.
        return lambda c, y, *x, **params: REGISTRY["where"](False, c, 0)
    if prim.sample_params or prim.arity > 2:
        if callable(partial):
            return lambda c, y, *x, **params: c * partial(y, *x, **params)
        return lambda c, y, *x, **params: c * partial
    # The hot path of small tensors, where unpacking arguments would cost more than the product.
    if callable(partial):
        if prim.arity == 1:
            return lambda c, y, x: c * partial(y, x)
        return lambda c, y, a, b: c * partial(y, a, b)
    if partial == 1:
        return lambda c, y, *x: c
    if partial == -1:
        return lambda c, y, *x: -c
    return lambda c, y, *x: c * partial


def _selecting(mask: Rule, keep: bool, natively: Rule | None) -> Rule:
    def selected(c: Array, y: Array, *x: Array, **params: Any) -> Array:
        plain = type(c) is _ndarray
        chosen = mask(y, *x, **params) if plain else mask(*map(numbers_of, (y, *x)), **params)
        where, zero = (choose, c.dtype.type(0)) if plain and type(chosen) is _ndarray else (REGISTRY["where"], 0)
        return where(chosen, c, zero) if keep else where(chosen, zero, c)

    def rule(c: Array, y: Array, *x: Array, **params: Any) -> Array:
        if natively and type(c) is _ndarray and c.size >= _STEP_FROM:
            dx = natively(c, y, *x, **params)
            if dx is not None:
                return dx
        return selected(c, y, *x, **params)

    return rule if natively else selected


# --- linear -------------------------------------------------------------------------------------


class Linear(Primitive):
    """A function that is linear in each differentiable argument on its own.

    `transpose` holds per argument the rule ``(g, *x, **params)``, None where no gradient flows. The jvp with respect to
    an argument is the op itself with the tangent in its place. Variadic ops (concatenate) are linear in all arguments
    together and state `joint_transpose` instead. Scaling by reals and moving elements is right for complex numbers too.
    """

    kind = "linear"

    def __init__(
        self,
        name: str,
        forward: str | Callable[..., Any],
        transpose: Sequence[Rule | None] = (),
        *,
        joint_transpose: Rule | None = None,
        takes_complex: bool = True,
        **facts: Any,
    ) -> None:
        super().__init__(name, forward, takes_complex=takes_complex, **facts)
        self.transpose = tuple(transpose)
        if joint_transpose is not None:
            joint: Rule = joint_transpose
            self.joint_vjp = lambda g, needs, _y, *x, **params: joint(g, needs, *x, **params)
            self.joint_jvp = self._jvp_of_all
        else:
            alone = len(self.transpose) == 1
            self.vjps = tuple(None if rule is None else _without_output(rule, alone) for rule in self.transpose)
            self.jvps = tuple(
                None if rule is None else self._jvp_of_argument(at) for at, rule in enumerate(self.transpose)
            )

    def _jvp_of_argument(self, position: int) -> Rule:
        def jvp(t: Array, _y: Array, *x: Array, **params: Any) -> Array:
            return self(*x[:position], t, *x[position + 1 :], **params)

        return jvp

    def _jvp_of_all(self, tangents: Sequence[Array | None], _y: Array, *x: Array, **params: Any) -> Array:
        full = [np.zeros(like.shape, like.dtype) if t is None else t for t, like in zip(tangents, x, strict=True)]
        return self(*full, **params)


def _without_output(rule: Rule, alone: bool) -> Rule:
    if alone:
        return lambda g, _y, x, **params: rule(g, x, **params)
    return lambda g, _y, *x, **params: rule(g, *x, **params)


# --- custom and fused ---------------------------------------------------------------------------


class Custom(Primitive):
    """A primitive with hand-written rules, per argument (`vjp`, `jvp`) or for all at once (`joint_*`)."""

    kind = "custom"

    def __init__(
        self,
        name: str,
        forward: str | Callable[..., Any],
        *,
        vjp: Sequence[Rule | None] | None = None,
        jvp: Sequence[Rule | None] | None = None,
        joint_vjp: Rule | None = None,
        joint_jvp: Rule | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(name, forward, **facts)
        self.vjps = None if vjp is None else tuple(vjp)
        self.jvps = None if jvp is None else tuple(jvp)
        self.joint_vjp, self.joint_jvp = joint_vjp, joint_jvp


class Fused(Primitive):
    """A composite with a hand-written vjp, for speed in eager mode.

    `forward(xp, *x, **params)` returns the result and the residuals for the vjp. With `companions`
    the result is a tuple of y (or several) and that many arrays without a derivative (statistics, indices).
    `joint_vjp(g, needs, residuals, *x, **params)` returns one cotangent per argument. `decompose` states the same in
    other ops: higher orders, forward mode, batching and the compiler use it, and a generic test compares the two.
    `vjp_in_ops` ``(g, needs, *x, **params)`` is the vjp of higher orders in fewer ops than that of the decomposition.
    """

    kind = "fused"

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        *,
        joint_vjp: Rule,
        decompose: Rule,
        vjp_in_ops: Rule | None = None,
        companions: int = 0,
        **facts: Any,
    ) -> None:
        super().__init__(name, forward, saves=("y", "x"), **facts)
        self.companions, self.joint_vjp, self.decompose, self.vjp_in_ops = companions, joint_vjp, decompose, vjp_in_ops

    def compute(self, args: tuple[Any, ...], params: Mapping[str, Any]) -> Any:
        return super().compute(args, params)[0]


elementwise, linear, custom, fused = Elementwise, Linear, Custom, Fused  # as entries call them


def canonical_axes(dim: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Return the axes as sorted non-negative integers; None and () mean all axes."""
    if dim is None:
        return tuple(range(ndim))
    if type(dim) is int and -ndim <= dim < ndim:
        return (dim % ndim,)
    axes = sorted(distinct_axes((dim,) if isinstance(dim, int | np.integer) else dim, ndim))
    return tuple(axes) if axes and ndim else tuple(range(ndim))


def distinct_axes(dims: Iterable[int], ndim: int) -> tuple[int, ...]:
    """Return several axes as non-negative integers in their order; raise if one occurs twice."""
    axes = tuple([canonical_axis(int(axis), ndim) for axis in dims])
    if len(set(axes)) != len(axes):
        raise errors.DIMS_TWICE(dims=axes, ndim=ndim, where=provenance.here())
    return axes


def canonical_axis(dim: int, ndim: int) -> int:
    """Return the axis as a non-negative integer; raise `IndexError` if it is out of range."""
    if -ndim <= dim < ndim:
        return dim % ndim
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise errors.DIM_OUT_OF_RANGE(dim=dim, ndim=ndim, low=-bound, high=bound - 1, where=provenance.here())
    return dim % bound


def bad_option(owner: str, name: str, given: Any, expected: str) -> Exception:
    """Return the exception for an invalid argument."""
    return errors.BAD_OPTION(owner=owner, name=name, given=given, expected=expected, where=provenance.here())
