"""Leave the library's own frames out of tracebacks, unless `GLASSGRAD_FULL_TRACEBACK` is set.

A traceback shows the user's line and the message. The hooks of scripts, threads, notebooks and pytest drop the
library's frames when they show an error; the exception itself keeps them. The hooks are installed when the first of the
library's errors is made or the first function is compiled, so a program without errors pays nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

TOLD = {"told": False, "modules": 0}
"""Whether the hooks are installed, and how many modules were loaded when they were last marked for pytest."""
_STANDARD = str(Path(os.__file__).parent) + os.sep


def wanted() -> bool:
    """Return whether tracebacks should leave out the library's frames."""
    return os.environ.get("GLASSGRAD_FULL_TRACEBACK", "") in {"", "0"}


def tell() -> None:
    """Install the hooks that leave out the library's frames; mark newly loaded modules for pytest."""
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
    """Return whether a file belongs to the library's internals, whose frames are left out.

    Messages that name the line of an op treat training loops as user code. Here they count as internal: a caller of
    `fit` did not write them.
    """
    from glassgrad.base import provenance

    loop = file.startswith(f"{provenance.PACKAGE}train{os.sep}")
    return loop or (file.startswith(provenance.PACKAGE) and provenance.is_internal(file))


def trimmed(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the library's frames and without the frames of other code that it called."""
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
    """Return whether a file is code that the library calls: the standard library, NumPy, or generated source."""
    from glassgrad.base import provenance

    standard = file.startswith(_STANDARD) and "site-packages" not in file
    return provenance.is_internal(file) or standard or file.startswith(("<frozen", "<glassgrad", "<__array_function__"))


def shortened(error: BaseException) -> TracebackType | None:
    """Return the traceback to show for an error, and drop causes that were raised within the library.

    The traceback of an error that the library did not raise on purpose is shown in full.
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
    """Return the traceback to show for one error, and the next error of the chain if it needs cutting as well."""
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
        return  # another custom handler is installed

    def show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
        if wanted():
            error.__traceback__ = trace = shortened(error)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((Exception,), show)


__all__ = ["is_ours", "shortened", "tell", "trimmed", "wanted"]
