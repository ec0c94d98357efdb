"""Facts about modules and classes that the walk in `reach.py` needs, independent of individual objects."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from glassgrad.base import provenance

_LIBRARIES = """
    numpy scipy torch jax jaxlib matplotlib rich llvmlite pytest _pytest hypothesis sympy mpmath pandas networkx
    tqdm
"""
OTHERS = sys.stdlib_module_names | frozenset(_LIBRARIES.split())
_OWN = "glassgrad"
_AS_USER = tuple(f"{_OWN}.{folder}" for folder in provenance.AS_USER)
_SCHEDULES = "glassgrad.optim.lr_scheduler"  # their counters affect only options, which every call reads again
# Special methods that do not affect a step.
_ASIDE_METHODS = """
    __init__ __new__ __del__ __init_subclass__ __post_init__ __repr__ __str__ __reduce__ __getstate__ __setstate__
    __copy__ __deepcopy__ __hash__ __eq__
"""
_ASIDE = frozenset(_ASIDE_METHODS.split())


@dataclass
class Parts:
    """The attributes of a class whose names are read.

    Attributes:
        known: the number of read names when this was made; None if it does not matter.
        space: the namespace of the class.
        every: the names and their values, in order.
        shared: those whose values are not functions.
        users: whether the class is the user's.
    """

    known: int | None
    space: Mapping[str, object]
    every: list[tuple[str, object]]
    shared: list[tuple[str, object]]
    users: bool


def parts_of(base: type, every: Collection[str], earlier: Parts | None) -> Parts:
    """Return the attributes of a class among `every` read name; `earlier` is the result for fewer names."""
    if base.__module__.split(".")[0] in OTHERS:
        return Parts(None, {}, [], [], users=False)
    space, users = vars(base) if earlier is None else earlier.space, not is_engine(base.__module__)
    wanted = {"forward", "__call__"}.union(every)
    wanted |= {name for name in space if users and name.startswith("__")} - _ASIDE
    found = [(name, space[name]) for name in sorted(wanted & space.keys())]
    shared = [(name, part) for name, part in found if not isinstance(code_in(part), types.FunctionType)]
    return Parts(len(every), space, found, shared, users=users)


def code_in(part: object) -> object:
    """Return the function in a property or method of a class, and anything else unchanged."""
    return part.fget if isinstance(part, property) else getattr(part, "__func__", part)


def says_what_it_is(kind: type) -> bool:
    """Tell whether `isinstance` depends only on the type; a proxy may report another class."""
    return not any("__class__" in vars(base) or "__getattribute__" in vars(base) for base in kind.__mro__[:-1])


def is_engine(module: str) -> bool:
    """Tell whether a module is part of the library itself, not a model or a training loop in it."""
    return module.split(".", maxsplit=1)[0] == _OWN and not module.startswith(_AS_USER)


def is_users(module: str) -> bool:
    """Tell whether a module is the user's."""
    return module.split(".", maxsplit=1)[0] not in OTHERS and not is_engine(module)


def is_users_class(kind: type) -> bool:
    """Tell whether a class is the user's and has attributes that may change."""
    return is_users(kind.__module__ or "") and not issubclass(kind, enum.Enum)


def is_read_by_user(kind: type) -> bool:
    """Tell whether numeric and string attributes of such objects are guarded only if the user's code reads them."""
    bases = [base.__module__ or "" for base in kind.__mro__]
    return any(module.startswith(_SCHEDULES) for module in bases) or not any(map(is_engine, bases))
