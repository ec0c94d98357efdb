"""Run a lesson cell by cell, so that the output of each cell is separate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glassgrad.lessons.program import CODE, Cell, Program, execute

__all__ = ["running"]


def running(program: Program) -> Iterator[Cell]:
    """Run a lesson; yield each cell, and run its code when the next one is requested.

    Example:
        >>> from glassgrad.lessons import programs
        >>> for cell in running(programs()[0]):
        ...     if cell.text.startswith("## The check"):
        ...         print("It comes to its check.")
        loss 49   slope for w 28.004   slope for b 14.001
        ...
        It comes to its check.
        The chain rule and the nudges agree.
    """
    names = {"__name__": "__main__", "__file__": str(program.path)}
    for cell in program.cells:
        yield cell
        if cell.kind == CODE:
            # Leading empty lines keep line numbers correct for tools that read the source.
            code = compile("\n" * (cell.line - 1) + cell.text, str(program.path), "exec")
            with np.errstate():
                execute(code, names)
