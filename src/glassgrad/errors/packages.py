"""Packages that only some features need: the message if one is missing, and the features that work without it.

Importing glassgrad and eager training need only NumPy. Each feature that needs more imports it on use, in a block
``with needed("matplotlib", "pictures", extra="pictures"):``, so that a smaller installation names the missing package.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from glassgrad.errors.kinds import GlassgradError, Message


class PackageError(GlassgradError, ImportError):
    """A package that a feature needs is not installed. An `ImportError`, so that `try: ... except ImportError` works."""


MISSING_PACKAGE = Message(
    PackageError,
    "{feature} need{s} {package}, which is not installed\nNext: pip install {install}",
)


@contextmanager
def needed(package: str, feature: str, extra: str = "") -> Iterator[None]:
    """Open a block for imports; if `package` itself is missing, name the feature that needs it and how to install it.

    Args:
        package: the name under which Python imports it; without an `extra`, also its name for pip.
        feature: what the user requested, as the subject of a sentence.
        extra: the extra of glassgrad that brings the package; without one the package is named.

    Raises:
        PackageError: instead of the ModuleNotFoundError for the package.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise  # something else is wrong with the installation
        install = f"'glassgrad[{extra}]'" if extra else package
        plural = "" if feature.endswith("s") else "s"
        raise MISSING_PACKAGE(feature=feature, s=plural, package=package, install=install) from None


@cache
def present(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    return importlib.util.find_spec(package) is not None


__all__ = ["MISSING_PACKAGE", "PackageError", "needed", "present"]
