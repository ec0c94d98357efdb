"""Take Linux away from a process: `python -m tests.systems.pretend SYSTEM PROGRAM` runs PROGRAM as on macOS or Windows.

Only what Python shows of a system is replaced. The kernel, the C library and the processor stay, so these tests see
whether the library asks for something that is missing elsewhere, and whether its other way works. They do not see how
another kernel or another C library behaves.
"""

from __future__ import annotations

import builtins
import io
import multiprocessing
import os
import platform
import runpy
import signal
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What only Linux has, and what only Unix has, as attributes of `os`.
LINUX = ("sched_getaffinity", "memfd_create", "eventfd", "pidfd_open", "posix_fallocate", "splice", "copy_file_range")
UNIX = (
    "fork", "forkpty", "register_at_fork", "geteuid", "getuid", "getegid", "getgid", "killpg", "setsid", "mkfifo",
    "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "uname", "getloadavg", "nice",
)  # fmt: skip  # a table
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog")
BINARY = 1 << 28


def without(owner: Any, *names: str) -> None:
    """Delete attributes that another system lacks."""
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)


def without_files(*roots: str) -> None:
    """Let no file below some folders be there."""

    def hiding(function: Callable[..., Any]) -> Callable[..., Any]:
        def hidden(path: Any = ".", *rest: Any, **more: Any) -> Any:
            if isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(roots):
                raise FileNotFoundError(2, "No such file or directory", os.fsdecode(path))
            return function(path, *rest, **more)

        return hidden

    for name in ("open", "stat", "lstat", "scandir", "listdir", "readlink", "access"):
        setattr(os, name, hiding(getattr(os, name)))
    builtins.open = io.open = hiding(io.open)


def with_locked_files() -> None:
    """Refuse to replace, rename or remove a file that this process has open, or a folder with one, as Windows does."""
    listdir, readlink, plain_open = os.listdir, os.readlink, io.open

    def held() -> list[str]:
        found = []
        for number in listdir("/proc/self/fd"):
            try:
                found.append(readlink(f"/proc/self/fd/{number}"))
            except OSError:  # of the listing itself
                continue
        with plain_open("/proc/self/maps", encoding="utf-8") as maps:
            return found + [line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) == 6]

    def refusing(function: Callable[..., Any], count: int) -> Callable[..., Any]:
        def refused(*paths: Any, **more: Any) -> Any:
            open_now = held()
            for path in paths[:count]:
                real = os.path.realpath(os.fsdecode(path))
                if any(one == real or one.startswith(real + os.sep) for one in open_now):
                    raise PermissionError(13, "The process cannot access the file, it is in use", os.fsdecode(path))
            return function(*paths, **more)

        return refused

    for name, count in {"replace": 2, "rename": 2, "remove": 1, "unlink": 1, "rmdir": 1}.items():
        setattr(os, name, refusing(getattr(os, name), count))


def with_text_files(page: str) -> None:
    """Translate ends of lines where a file is not opened as binary, and take a code page where none is named."""
    plain_open, plain_write, open_text = os.open, os.write, io.open
    binary: set[int] = set()
    os.O_BINARY = BINARY

    def low_open(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        descriptor = plain_open(path, flags & ~BINARY, mode, **more)
        (binary.add if flags & BINARY else binary.discard)(descriptor)
        return descriptor

    def low_write(descriptor: int, content: Any) -> int:
        if descriptor in binary or descriptor < 3:
            return plain_write(descriptor, content)
        plain_write(descriptor, bytes(content).replace(b"\n", b"\r\n"))
        return len(content)

    def translated(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *rest: Any,
        **more: Any,
    ) -> Any:
        if "b" not in mode:
            encoding = encoding or page
            newline = "\r\n" if newline is None and set(mode) & set("wax+") else newline
        return open_text(file, mode, buffering, encoding, errors, newline, *rest, **more)

    os.open, os.write = low_open, low_write
    builtins.open = io.open = translated


def with_locks_of_windows() -> None:
    """Put a `msvcrt` there whose `locking` is the lock of Unix, and take Unix's modules away."""
    import fcntl

    locks = types.ModuleType("msvcrt")
    locks.LK_NBLCK, locks.LK_UNLCK = 2, 0
    locks.locking = lambda descriptor, mode, _count: fcntl.flock(
        descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if mode else fcntl.LOCK_UN
    )
    sys.modules["msvcrt"] = locks
    for name in MODULES:
        sys.modules[name] = None


def with_threads_of_windows() -> None:
    """Offer the two functions of Windows that waiting threads call, made of those of the C library."""
    import ctypes

    from llvmlite import binding

    library = ctypes.CDLL(None)
    kept = [ctypes.CFUNCTYPE(ctypes.c_int)(library.sched_yield)]
    kept.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda milliseconds: library.usleep(1000 * milliseconds)))
    for name, function in zip(("SwitchToThread", "Sleep"), kept, strict=True):
        binding.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    with_threads_of_windows.kept = kept


def loaded_first() -> None:
    """Load what decides by the system as it is imported, and is not ours."""
    import concurrent.futures.process
    import ctypes.util
    import importlib.util
    import multiprocessing.connection
    import multiprocessing.managers
    import multiprocessing.reduction
    import multiprocessing.shared_memory
    import multiprocessing.synchronize
    import pathlib
    import shutil
    import subprocess
    import tempfile
    import urllib.request
    import webbrowser

    for name in ("numpy", "scipy.linalg.cython_blas", "scipy.special", "llvmlite.binding", "safetensors.numpy"):
        importlib.import_module(name)
    for name in ("rich.console", "rich.live", "typer.main", "matplotlib.figure", "ml_dtypes"):
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    assert all(
        (concurrent.futures, ctypes.util, multiprocessing, pathlib, shutil, subprocess, tempfile, urllib, webbrowser)
    )


def macos() -> None:
    """Pretend to be macOS: Unix without /proc, futex, memfd and affinities; processes are started anew."""
    loaded_first()
    multiprocessing.set_start_method("spawn", force=True)
    sys.platform = "darwin"
    platform.system = lambda: "Darwin"
    without(os, *LINUX)
    without_files("/proc", "/sys")


def windows() -> None:
    """Pretend to be Windows: no fork, no owners, no modes, locked files, translated text."""
    loaded_first()
    with_threads_of_windows()
    multiprocessing.set_start_method("spawn", force=True)
    with_locks_of_windows()
    with_locked_files()
    with_text_files("cp1252")
    without_files("/proc", "/sys")
    sys.platform = "win32"
    platform.system = lambda: "Windows"
    without(os, *LINUX, *UNIX)
    without(signal, "SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "setitimer")


SYSTEMS = {"macos": macos, "windows": windows}

if __name__ == "__main__":
    system, program, *rest = sys.argv[1:]
    SYSTEMS[system]()
    sys.argv = [program, *rest]
    sys.path.insert(0, str(Path(program).resolve().parent))
    runpy.run_path(program, run_name="__main__")
