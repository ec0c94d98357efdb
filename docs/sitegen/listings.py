"""Pages that show what code prints: their Python blocks are run in order, and each listing is what the block before
it prints.

A listing is a fence with the word ``output`` behind its language; a Python fence may name the file that its code is
said to stand in (``python net.py``). ``pytest tests/docs/test_listings.py`` compares, and with ``--update-goldens``
writes what is printed today into the page.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"^```(?P<info>\S[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_SECONDS = re.compile(r"\d+\.\d+ s\b")


@dataclass(frozen=True)
class Listing:
    """What a page shows as printed, what is printed now, and where in the page it stands."""

    shown: str
    printed: str
    span: tuple[int, int]

    @property
    def agrees(self) -> bool:
        """Tell whether the page shows what is printed; durations may differ."""
        return _SECONDS.sub("- s", self.shown) == _SECONDS.sub("- s", self.printed)


def has_listings(text: str) -> bool:
    """Tell whether a page shows what its code prints."""
    return any("output" in fence["info"].split()[1:] for fence in _FENCE.finditer(text))


def listings(text: str) -> list[Listing]:
    """Run the Python blocks of a page and return its listings.

    Raises `ValueError` for a listing without code before it, and for printed text that the page does not show.
    """
    scope: dict[str, Any] = {"__name__": "__main__"}
    found = []
    waiting = ""
    for number, fence in enumerate(_FENCE.finditer(text)):
        language, *rest = fence["info"].split()
        if "output" in rest:
            if not waiting:
                raise ValueError(f"no code printed the listing that begins with {fence['body'][:60]!r}")
            found.append(Listing(fence["body"], waiting, fence.span("body")))
            waiting = ""
        elif language == "python":
            if waiting:
                raise ValueError(f"the page does not show what was printed: {waiting[:60]!r}")
            waiting = _printed(fence["body"], rest[0] if rest else f"block {number}", scope)
    if waiting:
        raise ValueError(f"the page does not show what was printed: {waiting[:60]!r}")
    return found


def _printed(source: str, file: str, scope: dict[str, Any]) -> str:
    """Run one block; return what it prints, without space at the ends of lines."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, file, "exec"), scope)  # noqa: S102 - a page of this repository
    return re.sub(r"[ \t]+$", "", out.getvalue(), flags=re.MULTILINE)


def refreshed(text: str) -> str:
    """Return a page with its listings as they are printed now."""
    for listing in reversed(listings(text)):
        if not listing.agrees:
            low, high = listing.span
            text = text[:low] + listing.printed + text[high:]
    return text


def has_avx2() -> bool:
    """Tell whether this machine can run what the pages show as machine code."""
    from glassgrad.compile.llvm.module.target import host

    return platform.machine() in {"x86_64", "AMD64"} and "+avx2" in host().features.split(",")


@contextlib.contextmanager
def common_machine() -> Iterator[None]:
    """Compile for a machine with AVX2 and nothing newer, so that listings are the same wherever they are made."""
    import llvmlite.binding as llvm

    from glassgrad.compile.llvm.module.target import host

    # A process that found all its code on the disk has not loaded LLVM's targets yet.
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = host()
    before = dict(vars(machine))
    machine.cpu, machine.features, machine.vector_bytes, machine.registers = "x86-64-v3", "", 32, 16
    machine.machine = llvm.Target.from_triple(machine.triple).create_target_machine(
        cpu=machine.cpu, features="", opt=2, reloc="pic", codemodel="small"
    )
    try:
        yield
    finally:
        vars(machine).update(before)


__all__ = ["Listing", "common_machine", "has_avx2", "has_listings", "listings", "refreshed"]
