"""Every message a user can meet: one entry each, one file per area.

An entry is a `Message`: the exception type to raise and a template that says what was given, what was
expected, where, and what to do next. Raise it as ``raise errors.NO_GRADIENT_PATH(where=..., ...)``.
Nothing here computes anything; the caller supplies the facts. A new entry goes into the file of its
area and is found as ``errors.NAME`` at once. The files are imported with the first message that somebody meets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from glassgrad.errors.kinds import *  # noqa: F403 - the exception types
from glassgrad.errors.kinds import Message

if TYPE_CHECKING:
    from glassgrad.errors.arrays import *  # noqa: F403 - every entry is public
    from glassgrad.errors.autograd import *  # noqa: F403 - every entry is public
    from glassgrad.errors.compile import *  # noqa: F403 - every entry is public
    from glassgrad.errors.data import *  # noqa: F403 - every entry is public
    from glassgrad.errors.distributed import *  # noqa: F403 - every entry is public
    from glassgrad.errors.distributions import *  # noqa: F403 - every entry is public
    from glassgrad.errors.doctor import *  # noqa: F403 - every entry is public
    from glassgrad.errors.files import *  # noqa: F403 - every entry is public
    from glassgrad.errors.func import *  # noqa: F403 - every entry is public
    from glassgrad.errors.inplace import *  # noqa: F403 - every entry is public
    from glassgrad.errors.launch import *  # noqa: F403 - every entry is public
    from glassgrad.errors.lessons import *  # noqa: F403 - every entry is public
    from glassgrad.errors.manual import *  # noqa: F403 - every entry is public
    from glassgrad.errors.native import *  # noqa: F403 - every entry is public
    from glassgrad.errors.nn import *  # noqa: F403 - every entry is public
    from glassgrad.errors.onnx import *  # noqa: F403 - every entry is public
    from glassgrad.errors.precision import *  # noqa: F403 - every entry is public
    from glassgrad.errors.runs import *  # noqa: F403 - every entry is public
    from glassgrad.errors.scalar import *  # noqa: F403 - every entry is public
    from glassgrad.errors.verify import *  # noqa: F403 - every entry is public


def _load() -> None:
    import pkgutil

    for area in pkgutil.iter_modules(__path__):  # noqa: F405 - every package has one
        entries = vars(importlib.import_module(f"{__name__}.{area.name}"))
        globals().update({name: value for name, value in entries.items() if isinstance(value, Message | type)})


if not TYPE_CHECKING:  # so that a type checker knows every name, and no others

    def __getattr__(name: str) -> Any:
        if not name.startswith("_"):
            _load()
        try:
            return globals()[name]
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """Return the exceptions and warnings, which programs catch; the entries are raised by the library alone."""
    _load()
    kinds = [(name, value) for name, value in globals().items() if not name.startswith("_")]
    return sorted(name for name, value in kinds if isinstance(value, type) and issubclass(value, Exception))
