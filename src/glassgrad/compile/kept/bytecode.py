"""Generated Python that an earlier process has compiled.

A deep network's step has thousands of conditions: CPython takes as long to compile their text as it takes to write a
hundred of its instructions, and reads the result in a twentieth of the time.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from types import CodeType

from glassgrad.compile.kept import files


def of(source: str, file: str) -> CodeType:
    """Return the code of a text that is said to be in `file`, from the disk if it is there."""
    # Everything that bytecode depends on: which Python, and how it treats assertions and docstrings.
    parts = ("python", sys.version, sys.implementation.cache_tag or "", str(sys.flags.optimize), file, source)
    key = hashlib.sha256("\x1e".join(parts).encode()).hexdigest()
    entry = files.read(key)
    if entry is not None:
        try:
            found = marshal.loads(entry[1])  # noqa: S302 - as trusted as the machine code beside it, and checked as that is
        except (ValueError, EOFError, TypeError):
            found = None
        if isinstance(found, CodeType):
            return found
        files.forget(key)
    code = compile(source, file, "exec")
    files.write(key, {}, marshal.dumps(code))
    return code
