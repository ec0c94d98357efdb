"""The method `show` of compiled functions, and the arguments that it uses if it is given none."""

from __future__ import annotations

import os
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.compile.front.calls.parameters import Args, Kwargs
from glassgrad.engine import tree


class Showing:
    """The method that shows a compiled function."""

    function: Any
    backend: str

    def show(self, *args: Any, path: str | os.PathLike[str] | None = None, **kwargs: Any) -> Path:
        """Show one call as a page: its graph to open, search and play, beside the program and the kernels.

        Every op has its formula, value, gradient and source line; a slider steps through the forward and the backward
        pass and shows what each op passes on; each line of the program links to its ops and back; kernels show which
        ops they contain and how long they take. The call's side effects are undone.

        The page opens in a browser, or in the notebook that calls this; without either, its path is printed.

        Args:
            args: arguments of the call, as for the function itself; without any, those that the latest program was
                traced for, if they are still alive. If they are gone there are no values.
            path: write the page there, and open nothing.
            kwargs: further arguments.

        Returns:
            The path of the file.

        Raises:
            CompileError: where the call cannot be traced, or there was none yet.

        Example:
            >>> import glassgrad as gg
            >>> w = gg.ones(2, requires_grad=True)
            >>> @gg.compile
            ... def loss(x):
            ...     return ((w * x) ** 2).sum()
            >>> import tempfile
            >>> loss.show(gg.tensor([1.0, 2.0]), path=tempfile.mkdtemp() + "/loss.html").name
            'loss.html'
        """
        from glassgrad.base.drawing.step_page import step_page
        from glassgrad.compile.view.show import step_graph, trace_graph

        given: Any = (args, kwargs)
        if not args and not kwargs:
            given = recalled(self._current("the page").given)  # type: ignore[attr-defined]  # of who has this method
        if given is None:
            graph = trace_graph(self._current("the page").capture, self.backend)  # type: ignore[attr-defined]  # as above
        else:
            graph = step_graph(self.function, *given, backend=self.backend)
        return shown(step_page(graph), graph.name, path)


def remembered(args: Args, kwargs: Kwargs) -> Any:
    """Return a call's arguments without keeping their arrays alive."""

    def held(leaf: Any, _path: tree.Path) -> Any:
        try:
            return weakref.ref(leaf)
        except TypeError:  # a number, a text
            return lambda: leaf

    return tree.map_tree(held, [list(args), dict(kwargs)])


def recalled(held: Any) -> tuple[Args, Kwargs] | None:
    """Return the arguments, or None where one of them is gone."""
    gone = []

    def found(leaf: Any, _path: tree.Path) -> Any:
        value = leaf()
        if value is None and isinstance(leaf, weakref.ref):
            gone.append(leaf)
        return value

    args, kwargs = tree.map_tree(found, held)
    return None if gone else (tuple(args), kwargs)


# --- where a page is shown ----------------------------------------------------------------------------------


def shown(html: str, name: str, path: str | os.PathLike[str] | None) -> Path:
    """Write a page and open it: in the notebook that asks, else in a browser; without either print where it is."""
    file = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="glassgrad-")) / f"{name}.html"
    try:
        file.write_bytes(html.encode())
    except OSError as error:
        raise errors.PAGE_NOT_WRITTEN(path=file, reason=error.strerror or error) from None
    if path is not None:
        return file
    import webbrowser

    display = _notebook()
    if display is not None:
        from glassgrad.base.drawing.page import framed

        # Not HTML(...), which warns of every frame.
        display.display({"text/html": framed(html, 760), "text/plain": f"The page is at {file}."}, raw=True)
    elif not (_has_display() and webbrowser.open(file.as_uri())):
        print(f"The page is at {file}; open it in a browser.")  # noqa: T201 - what the caller asked to see
    return file


def _notebook() -> Any:
    """Return what a notebook shows things with, inside of one."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return None if running is None or not hasattr(running, "kernel") else sys.modules.get("IPython.display")


def _has_display() -> bool:
    """Tell whether a browser has a screen; those of a terminal cannot show the page."""
    if sys.platform in {"win32", "darwin"}:
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
