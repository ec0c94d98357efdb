"""The methods of compiled functions that write a program in C, and read back what it stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.compile.front.calls.cached_trace import TraceCall
from glassgrad.compile.front.calls.captured import Capture
from glassgrad.compile.front.calls.parameters import Function, parameter_names
from glassgrad.compile.front.capture import TRACING_LOCK, capture
from glassgrad.compile.showing import recalled
from glassgrad.engine import tree


class Exporting:
    """How a compiled function leaves Python, and comes back."""

    function: Function
    keep_grads: bool
    _latest: TraceCall | None

    def export_c(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the latest program as C that a person can read, with its state: training or inference.

        The folder then has `step.h` and `step.c` (C11, no library but libm, nothing allocated), `step.weights` (the
        state now, safetensors), an example `main.c` with the batch `step.example`, a Makefile and a README. Names are
        yours; each block has your line and the formulas of its ops as a comment. Random numbers continue the stream of
        the generator. Numbers that the function reads in every call, such as `lr`, are members of the struct.

        Args:
            folder: made if it does not exist; files of the same names are replaced.

        Returns:
            The paths of the files.

        Raises:
            CompileError: if there was no call yet, or for what C cannot say, with your line; nothing is written.
            FileError: if a file cannot be written.

        Example:
            >>> import tempfile
            >>> import glassgrad as gg
            >>> w = gg.ones(3, requires_grad=True)
            >>> @gg.compile
            ... def loss(x):
            ...     return ((w.detach() * x) ** 2).sum()
            >>> loss(gg.tensor([1.0, 2.0, 3.0]))
            tensor(14.)
            >>> [file.name for file in loss.export_c(tempfile.mkdtemp())]
            ['step.h', 'step.c', 'main.c', 'Makefile', 'README', 'step.weights', 'step.example']
        """
        from glassgrad.compile.c.export import export

        captured, leaves = self._lasting()
        return export(captured, folder, leaves)

    def load_c(self, path: str | os.PathLike[str]) -> None:
        """Put the state that a written program stored (`step_save`) back: parameters, optimizer, buffers, generators.

        The function then goes on where the program stopped. Options such as `lr` keep the values they have here.

        Raises:
            ArgumentError: if the file is not from this function's program; nothing is changed.
            CompileError: as for `export_c`.

        Example:
            >>> import pathlib
            >>> import tempfile
            >>> import glassgrad as gg
            >>> count = gg.zeros(1)
            >>> @gg.compile
            ... def step():
            ...     count.add_(1)
            >>> step()
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> _ = step.export_c(folder)
            >>> step()
            >>> step.load_c(folder / "step.weights")
            >>> count
            tensor([1.])
        """
        from glassgrad.compile.c.export import load_state

        load_state(self._lasting()[0], path)

    def _lasting(self) -> tuple[Capture, list[Any] | None]:
        """Return a trace that serves any number of calls, and the leaves of a call's arguments, if they are alive."""
        latest = self._latest
        if latest is None:
            raise errors.NOT_CALLED_YET(what="the program")
        given = recalled(latest.given)
        leaves = None if given is None else tree.every_leaf({"args": given[0], "kwargs": given[1]})
        if not latest.capture.once:
            return latest.capture, leaves
        if given is None:
            raise errors.C_FIRST_CALL(name=getattr(self.function, "__name__", "the function"))
        # The first call made the optimizer's state; what the next call does is traced without running it.
        with TRACING_LOCK:
            names = parameter_names(self.function)
            captured = capture(self.function, *given, names=names, keep_grads=self.keep_grads)
            if captured.undo is not None:
                captured.undo()
        return captured, leaves
