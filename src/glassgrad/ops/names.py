"""One table of the public names of functions and methods.

A function or primitive is public if a module in `_MODULES` defines it under a name without a leading underscore or a
trailing ``_p``; helpers that several op files share live in `axes` and `places`.
`PUBLIC` maps a name to its function. `ALIASES` gives the other libraries' names for the same thing,
`KEYWORDS` their spelling of arguments. A name in `NOT_METHODS` is a function only.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.tables import pairs, words
from glassgrad.ops import (
    activation,
    arrange,
    complexes,
    compound,
    ctc,
    data_dependent,
    eigen,
    einsum,
    elementwise,
    examples,
    factorise,
    fft,  # noqa: F401 - its functions are in glassgrad.fft, its primitives belong to the registry
    fused,
    fused_attention,
    fused_loss,
    fused_norm,
    fused_recurrent,
    index,
    linalg,
    lu,
    norms,
    pooling,
    reduce,
    resize,
    sampling,
    scan,
    scatter,
    shape,
    solve,
    sort,
    sparse_products,  # noqa: F401 - behind glassgrad.sparse; its primitive belongs to the registry
    spatial,
    special,
    special_functions,
    spectra,
    statistics,
    strided,
)
from glassgrad.ops.complex_input import guarded
from glassgrad.ops.core import INTERPRETERS, REGISTRY, Array, Primitive
from glassgrad.ops.kernels import compiled

compiled.register()

_FRONT = "glassgrad"

# Given keyword -> our parameter names, in order of preference. A parameter of the same name takes precedence.
KEYWORDS: dict[str, tuple[str, ...]] = {
    given: tuple(ours.split("|"))
    for given, ours in pairs("""
        axis=dim|dims axes=dim|dims dims=dim keepdims=keepdim ddof=correction a_min=min a_max=max axis1=dim1
        axis2=dim2 exponent=other x2=other|b y=other|b b=other end=other v=x other=b tensor=b vec=b vec2=b mat1=a
        mat2=b batch2=b B=b indices=index|indices_or_sections sections=indices_or_sections
        split_size_or_sections=split_size split_sizes=split_size values=value|other|x arrays=tensors seq=tensors
        newshape=shape size=shape shape=size shift=shifts kth=k k=diagonal offset=diagonal test_elements=choices
        pad_width=pad axis0=dim0 x=input
    """).items()
}
FIRST = words("input x a x1 arr m array self tensors arrays ary elements A prototype tensor")
# Other libraries' names for the arguments that we take as separate values, as in reshape(x, 2, 3).
REST = ("shape", "size", "newshape", "dims", "axes", "axis", "sizes", "repeats", "reps")

ALIASES = pairs("""
    neg=negative sub=subtract mul=multiply div=divide true_divide=divide pow=power absolute=abs ne=not_equal
    lt=less le=less_equal gt=greater ge=greater_equal clamp=clip concat=cat concatenate=cat permute_dims=permute
    swapaxes=transpose moveaxis=movedim expand_dims=unsqueeze type=astype copy=clone ravel=flatten expit=sigmoid
    logsigmoid=log_sigmoid arcsin=asin arccos=acos arctan=atan arcsinh=asinh arccosh=acosh arctanh=atanh
    arctan2=atan2 fix=trunc around=round radians=deg2rad degrees=rad2deg fabs=abs bitwise_invert=bitwise_not
    invert=bitwise_not lgamma=gammaln psi=digamma cumulative_sum=cumsum cumulative_prod=cumprod product=prod
    trapz=trapezoid unstack=unbind swapdims=transpose row_stack=vstack array_split=tensor_split flipdims=flip
    take_along_dim=take_along_axis logsoftmax=log_softmax ger=outer igamma=gammainc igammac=gammaincc
    bitwise_left_shift=left_shift bitwise_right_shift=right_shift split_with_sizes=split unsafe_split=split
    unsafe_split_with_sizes=split unsafe_chunk=chunk resolve_neg=resolve_conj conj_physical=conj mvlgamma=multigammaln
    orgqr=householder_product
    """)

_MODULES: tuple[ModuleType, ...] = (
    elementwise, activation, special, shape, arrange, strided, reduce, norms, scan, sort, index, scatter,
    data_dependent, linalg, fused, fused_norm, fused_attention, fused_recurrent, fused_loss, ctc, compound, solve,
    factorise, einsum, spatial, resize, complexes, statistics, lu, eigen, spectra, pooling,
    sampling, special_functions,
)  # fmt: skip  # a table

# Functions that cannot be methods: their first argument is not the tensor.
NOT_METHODS = {
    *words("""
    where safe_where embedding cat concat concatenate stack one_hot hstack vstack dstack column_stack row_stack
    meshgrid broadcast_tensors segment_sum trapezoid trapz pad glu bucketize searchsorted isin threshold softmin
    at_set at_add einsum chain_matmul linalg_svd cdist tensordot complex real imag polar block_diag gradient
    betainc constant_pad_nd cumulative_trapezoid vander householder_product
    """),
    *(f"{name}_copy" for name in strided._VIEWS if name != "narrow"),
}
_OF_IMAGES = (spatial, pooling, resize, sampling)  # none of their functions becomes a method


class _Form(NamedTuple):
    """The arguments of a function: its keywords, its first parameter, and whether it takes `*args`."""

    keywords: frozenset[str]
    first: str | None
    rest: bool


@functools.cache
def _form(function: Callable[..., Any]) -> _Form:
    import inspect  # takes longer to import than the whole table

    names = list(inspect.signature(function).parameters.values())
    keywords = frozenset(p.name for p in names if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY})
    first = names[0].name if names and names[0].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD else None
    return _Form(keywords, first, any(p.kind is p.VAR_POSITIONAL for p in names))


@functools.cache
def _renames(form: _Form) -> dict[str, str]:
    """Return the function's own name for each foreign keyword."""
    known = form.keywords
    renames = {given: name for given in FIRST if given not in known and (name := form.first) is not None}
    for given, candidates in KEYWORDS.items():
        ours = next((name for name in candidates if name in known), None)
        if ours is not None and given not in known:
            renames[given] = ours
    return renames


def _translator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the slow path of a call with keywords: rename them, reject unknown ones."""

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        form = _form(function)
        known, renames = form.keywords, _renames(form)
        translated: dict[str, Any] = {}
        for given, value in kwargs.items():
            ours = renames.get(given, given)
            if ours == form.first and args:
                ours = given
            if ours in known:
                translated[ours] = value
            elif form.rest and given in REST:
                args = (*args, value)
            elif given == "out" and value is not None:
                raise errors.OUT_NOT_SUPPORTED(op=name, where=provenance.here())
            elif given not in {"out", "device"}:
                raise _unknown(name, given, known)
        if form.rest and form.first in translated:
            args = (translated.pop(form.first), *args)
        return function(*args, **translated)

    return call


def _unknown(op: str, given: str, known: frozenset[str]) -> Exception:
    import difflib

    close = difflib.get_close_matches(given, known, n=1)
    nearest = f"\nNext: did you mean {close[0]!r}?" if close else f"\nExpected: {', '.join(sorted(known))}."
    return errors.UNKNOWN_KEYWORD(op=op, given=given, nearest=nearest, where=provenance.here())


def public(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the public form of a function or primitive, which also takes the other libraries' keywords."""
    if isinstance(function, Primitive):
        return _public_primitive(function, name)
    function = guarded(function, name)
    translate = _translator(name, function)
    own = _own_keywords(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs:
                return function(*args)
            return function(*args, **kwargs) if own.issuperset(kwargs) else translate(args, kwargs)
        except _RAW as error:
            told = _told(name, args, error)
            if told is None:
                raise
            raise told from error

    return call


# What Python and NumPy raise for an invalid argument; our own errors derive from these classes.
_RAW = (ValueError, IndexError, ZeroDivisionError, OverflowError)


def _told(name: str, args: tuple[Any, ...], error: Exception) -> Exception | None:
    """Return our error for a raw one raised inside an op of ours; None for our own errors and the user's."""
    if isinstance(error, errors.GlassgradError):
        return None
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    origin = trace.tb_frame.f_code.co_filename if trace is not None else ""
    if not _is_engine(origin):
        return None
    shapes = [f"an array of shape {tuple(arg.shape)}" if hasattr(arg, "shape") else repr(arg)[:40] for arg in args]
    message = errors.INDEX_FAILED if isinstance(error, IndexError) else errors.OP_FAILED
    return message(op=name, where=provenance.here(), operands=", ".join(shapes), reason=str(error).rstrip("."))


def _is_engine(filename: str) -> bool:
    return provenance.is_internal(filename) or "numpy" in filename or "scipy" in filename


def _own_keywords(function: Callable[..., Any]) -> frozenset[str]:
    """Return the keywords that a function itself takes, except its first parameter: they need no translation."""
    code = _innermost(function).__code__
    return frozenset(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])


def _innermost(function: Any) -> FunctionType:
    """Return the function below its decorators, like `inspect.unwrap` but without that slow import."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function  # type: ignore[no-any-return]  # what decorators of functions wrap are functions


def _public_primitive(prim: Primitive, name: str) -> Callable[..., Any]:
    arity = len(prim.vjps or ())

    def unary(x: Array) -> Array:
        return prim(x)

    def binary(x: Array, other: Array) -> Array:
        return prim(x, other)

    form: Any = {1: unary, 2: binary}.get(arity, prim.__call__)
    translate = _translator(name, form)

    def one(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != 1:
            return translate(args, kwargs)
        interpreter = INTERPRETERS.get(type(args[0]))
        return prim(args[0]) if interpreter is None else interpreter.apply(prim, args, {})

    def several(*args: Any, **kwargs: Any) -> Any:
        return translate(args, kwargs) if kwargs else prim(*args)

    call: Any = one if arity == 1 else several
    call.__name__ = call.__qualname__ = name
    call.__wrapped__ = form  # what `help` and editors show as its signature
    call.__doc__ = _told_of(prim, arity)
    call.primitive = prim  # lets the op table find its entry
    call.takes_complex = prim.takes_complex
    return call  # type: ignore[no-any-return]  # one of the two functions above


def _told_of(prim: Primitive, arity: int) -> str:
    """Return the `help` text of a primitive: formula, derivative and errors."""
    text = prim.formula
    raised = "" if prim.takes_complex else "\n        KindError: complex numbers are given; real ones are expected."
    if prim.kind == "elementwise":
        text += f"\n\n    Computed for each {'element' if arity == 1 else 'pair of elements'}."
        if arity > 1:
            raised += "\n        ShapeError: the shapes do not broadcast."
    if prim.derivative:
        text += f"\n\n    Derivative: {prim.derivative}" + (
            ", where y is the result." if "y" in prim.derivative else "."
        )
    return f"{text}\n\n    Raises:{raised}" if raised else text


def _is_public(name: str, value: Array, module: ModuleType) -> bool:
    if isinstance(value, Primitive):
        return not name.startswith("_") and not name.endswith("_p")
    return name[0] != "_" and isinstance(value, FunctionType) and value.__module__ == module.__name__


def _collect() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for module in _MODULES:
        own = {name: value for name, value in vars(module).items() if _is_public(name, value, module)}
        table.update({name: public(value, name) for name, value in own.items()})
        if module in _OF_IMAGES:
            NOT_METHODS.update(name for name, value in own.items() if not isinstance(value, Primitive))
    for alias, name in ALIASES.items():
        table.setdefault(alias, table[name])
    return table


PUBLIC: dict[str, Any] = _collect()


def at_home(module: str, table: Mapping[str, Any]) -> None:
    """Set the module and name of functions to those of a public module, unless they can be found where they say.

    Wrappers carry the name of the wrapped function or of the place that made them; pickle cannot find them by it.
    """
    examples.show(module, table)
    for name, function in table.items():
        if not isinstance(function, FunctionType) or function.__module__ == _FRONT:
            continue
        said = vars(sys.modules.get(function.__module__, sys))
        if said.get(function.__qualname__) is not function:
            function.__module__, function.__qualname__ = module, name


def registered(name: str) -> Primitive:
    """Return the primitive of a name; pickle finds it with this function."""
    return REGISTRY[name]


def _reduced(prim: Primitive) -> str | tuple[Any, ...]:
    """Make copies and pickles of a primitive resolve to the primitive itself."""
    return (registered, (prim.name,)) if REGISTRY.get(prim.name) is prim else prim.name


Primitive.__reduce__ = _reduced  # type: ignore[method-assign, assignment]  # here, where the registry is complete


def methods() -> dict[str, Any]:
    """Return the methods of `Tensor`."""
    return {name: function for name, function in PUBLIC.items() if name not in NOT_METHODS}
