"""What a user sees of the library in a traceback: nothing, unless `GLASSGRAD_FULL_TRACEBACK` is set.

An error is the user's line and the message. Frames of the library are left out where an error is shown, in a script, a
thread, a notebook and by pytest; the exception itself keeps them, and a program that works pays nothing: the places
that show errors are told when the first error of ours is made, or the first function is compiled.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

TOLD = {"told": False, "modules": 0}
"""Whether those that show errors were told, and how many modules were loaded when pytest was."""
_STANDARD = str(Path(os.__file__).parent) + os.sep


def wanted() -> bool:
    """Tell whether the library's frames are to be left out."""
    return os.environ.get("GLASSGRAD_FULL_TRACEBACK", "") in {"", "0"}


def tell() -> None:
    """Tell whatever shows errors to leave the library's frames out; pytest again when modules were loaded since."""
    if not wanted():
        return
    if "pytest" in sys.modules and TOLD["modules"] != len(sys.modules):
        TOLD["modules"] = len(sys.modules)
        for name, module in list(sys.modules.items()):
            ours = name.startswith("glassgrad.") and isinstance(module, ModuleType)
            if ours and is_ours(vars(module).get("__file__") or ""):
                vars(module)["__tracebackhide__"] = True
    if TOLD["told"]:
        return
    TOLD["told"] = True
    _in_scripts()
    _in_threads()
    _in_notebooks()


def is_ours(file: str) -> bool:
    """Tell whether a file is part of the library that a user does not look at.

    Training loops count as a user's code where messages name the line of an op, but nobody who calls `fit` wrote them.
    """
    from glassgrad.base import provenance

    loop = file.startswith(f"{provenance.PACKAGE}train{os.sep}")
    return loop or (file.startswith(provenance.PACKAGE) and provenance.is_internal(file))


def trimmed(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the library's frames, and without those of what the library called in the end."""
    kept: list[TracebackType] = []
    inside = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = is_ours(file) or (inside and _is_foreign(file))
        if not inside:
            kept.append(trace)
        trace = trace.tb_next
    result: TracebackType | None = None
    for one in reversed(kept):
        result = TracebackType(result, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return result


def _is_foreign(file: str) -> bool:
    """Tell whether a file is one that the library calls: Python's own, NumPy's, or text that was made in passing."""
    from glassgrad.base import provenance

    standard = file.startswith(_STANDARD) and "site-packages" not in file
    return provenance.is_internal(file) or standard or file.startswith(("<frozen", "<glassgrad", "<__array_function__"))


def shortened(error: BaseException) -> TracebackType | None:
    """Return what to show of an error's traceback, and let go of causes that lie within the library.

    An error that the library did not mean to raise is shown whole.
    """
    result = error.__traceback__
    one: BaseException | None = error
    seen: set[int] = set()  # `raise error from error` is its own cause
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        trace, chained = _cut(one)
        if one is error:
            result = trace
        else:
            one.__traceback__ = trace
        one = chained
    return result


def _cut(error: BaseException) -> tuple[TracebackType | None, BaseException | None]:
    """Return what to show of one error's traceback, and the next error of the chain if that is to be cut as well."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    meant: bool = getattr(error, "_meant", False)
    if last is None or (not meant and is_ours(last.tb_frame.f_code.co_filename)):
        return error.__traceback__, None
    result = trimmed(error.__traceback__)
    if result is None:
        return error.__traceback__, None
    chained = error.__cause__ if error.__suppress_context__ else error.__context__
    if chained is not None and meant and trimmed(chained.__traceback__) is None:
        error.__cause__, error.__suppress_context__ = None, True
        return result, None
    return result, chained


def _in_scripts() -> None:
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if wanted():
            error.__traceback__ = trace = shortened(error)
        before(kind, error, trace)

    sys.excepthook = show


def _in_threads() -> None:
    before = threading.excepthook

    def show(args: Any) -> None:
        if wanted() and args.exc_value is not None:
            args.exc_value.__traceback__ = trace = shortened(args.exc_value)
            args = threading.ExceptHookArgs((args.exc_type, args.exc_value, trace, args.thread))
        before(args)

    threading.excepthook = show


def _in_notebooks() -> None:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None or getattr(shell, "custom_exceptions", None):
        return  # somebody has a handler of their own

    def show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
        if wanted():
            error.__traceback__ = trace = shortened(error)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((Exception,), show)


__all__ = ["is_ours", "shortened", "tell", "trimmed", "wanted"]
