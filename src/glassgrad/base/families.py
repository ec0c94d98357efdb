"""Serve the names of packages that consist of families: one file per family, whose `__all__` lists its names.

A package such as `glassgrad.nn` lists nothing. When its first name is used, `__all__` is read from the text of each
file in its folder, so that only the family of that name is imported. A file without `__all__` is private to its
package. `python tools/stubs.py` writes the same lists for type checkers.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from glassgrad.base import documents


class Families:
    """The public names of a package and the families that define them.

    Do not use `pathlib` or `dataclasses` here: importing them takes longer than reading all families.

    Args:
        package: the name of the package.
        folder: where its files are.
        files: the prefix of the families' file names.
        modules: submodules that are public themselves.
        apart: prefixes of files whose names are only available from the file itself, e.g. `swa_utils`.
        inner: folders whose files are families as well.
        elsewhere: names from other modules: name -> module.
        instead: what to use instead of names that the package lacks.
    """

    def __init__(
        self,
        package: str,
        folder: str,
        files: str = "",
        modules: Sequence[str] = (),
        apart: Sequence[str] = (),
        inner: Sequence[str] = (),
        elsewhere: Mapping[str, str] | None = None,
        instead: Mapping[str, str] | None = None,
    ) -> None:
        self.package = package
        self.folder = folder
        self.files = files
        self.modules = modules
        self.apart = apart
        self.inner = inner
        self.elsewhere = elsewhere
        self.instead = instead

    @cached_property
    def homes(self) -> dict[str, str]:
        """The module of every name, in the order of the families."""
        found = {name: module for module, names in self.listed() for name in names}
        return found | dict(self.elsewhere or {})

    @cached_property
    def public(self) -> list[str]:
        """The value of `__all__`."""
        return [*(name for name in self.homes if not name.startswith("_")), *self.modules]

    def listed(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each family's module and the names in its `__all__`."""
        for inner in ("", *self.inner):
            for stem, text in _files(f"{self.folder}{os.sep}{inner}", self.files):
                # Literal lists, after = or +=; nn/functional/__init__.py, which computes its list, is no family.
                rows = [row.partition(b"= [") for row in (b"\n" + text).split(b"\n__all__ ")[1:]]
                lists = [rest.partition(b"]")[0] for before, _, rest in rows if before in {b"", b"+"}]
                names = [name.decode() for listed in lists for name in listed.split(b'"')[1::2]]
                if names and not stem.startswith(("__init__", *self.apart)):
                    yield ".".join(filter(None, (self.package, inner, stem))), names

    def get(self, name: str) -> Any:
        """Return the object of a name and store it in the package; raise `AttributeError` with the nearest names."""
        if name in self.modules:
            return importlib.import_module(f"{self.package}.{name}")
        if name == "__all__":
            value: Any = self.public
        elif name.startswith("__") or name not in self.homes:
            # `from glassgrad.nn import hooks` calls this before it imports the file: skip the search for near names.
            if sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap":
                raise AttributeError(name)
            from glassgrad.errors.missing import lent, missing

            found = lent(self.package, name)
            if found is not None:
                return found
            raise missing(self.package, name, () if name.startswith("_") else self.public, self.instead)
        else:
            value = getattr(importlib.import_module(self.homes[name]), name)
            documents.complete(self.package, name, value)
            documents.say_type(value)
        setattr(sys.modules[self.package], name, value)
        return value


def _files(folder: str, begin: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield name (without suffix) and contents of the files of a folder whose names begin with `begin`."""
    for name in sorted(entry.name for entry in os.scandir(folder)):
        if name.startswith(begin) and name.endswith(".py"):
            with io.FileIO(f"{folder}{os.sep}{name}") as file:
                yield name.removesuffix(".py"), file.read()


def serve(package: str, folder: Sequence[str], **options: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package; `folder` is its `__path__`, for options see `Families`."""
    families = FOUND[package] = Families(package, folder[0], **options)
    return families.get, lambda: sorted(families.public)


def modules_with(package: str, variable: str) -> list[Any]:
    """Return the modules of a package that assign a variable at their top level; import only these."""
    line = re.compile(rb"^%s\b.*=" % variable.encode(), re.MULTILINE)
    (folder,) = importlib.import_module(package).__path__
    names = [name for name, text in _files(folder) if line.search(text)]
    return [importlib.import_module(f"{package}.{name}") for name in names]


# The imported packages that are served this way; `tools/stubs.py` reads it.
FOUND: dict[str, Families] = {}
