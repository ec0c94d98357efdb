"""What a trial may not do: write outside of its folder, start programs, reach the network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, TypeGuard

from glassgrad.doctor.reading.names import named

_CHANGES = named(
    "os.remove os.rename os.rmdir os.mkdir os.truncate os.link os.symlink os.chmod os.chown os.utime "
    "shutil.rmtree shutil.move shutil.copyfile"
)
_STARTS = named("subprocess.Popen os.system os.exec os.posix_spawn os.startfile socket.connect socket.bind")
Place = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def shut(folder: Path) -> None:
    """Refuse writes outside of a folder, other programs and the network, until this process ends.

    Python reports such calls to audit hooks. `torch.save` writes from C++, so it is replaced.
    """
    root = folder.resolve()

    def allowed(path: Place | int) -> bool:
        return isinstance(path, int) or _full(path).is_relative_to(root) or _full(path).parts[1:2] == ("dev",)

    def inside(path: Place | int) -> bool:
        """Tell whether the entry itself lies in the folder, wherever it points to."""
        return isinstance(path, int) or allowed(Path(os.fsdecode(path)).absolute().parent)

    def write(path: Place | int) -> None:
        if not isinstance(path, int) and Path(os.fsdecode(path)).is_symlink() and inside(path):
            Path(os.fsdecode(path)).unlink()  # a file of the user's: the trial writes one of its own
        if not allowed(path):
            raise PermissionError(f"a trial of a change writes to its own folder only, not to {path!r}")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and args[0] is not None and _is_writing(*args[1:]):
            write(args[0])
        elif event in _STARTS or (event in _CHANGES and not all(inside(one) for one in args if _is_path(one))):
            raise PermissionError(f"a trial of a change does not do {event}")

    sys.addaudithook(hook)
    _silence("torch", "save")
    _silence("torch.jit", "save")


def _full(path: Place) -> Path:
    return Path(os.fsdecode(path)).resolve()


def _is_path(given: object) -> TypeGuard[Place | int]:
    return isinstance(given, str | bytes | os.PathLike)


def _is_writing(mode: object, flags: int) -> bool:
    return any(letter in mode for letter in "wxa+") if isinstance(mode, str) else bool(flags & _WRITES)


def _nothing(*_args: object, **_kwargs: object) -> None:
    """Save nothing."""


def _silence(module: str, name: str) -> None:
    loaded = sys.modules.get(module)
    if loaded is not None and hasattr(loaded, name):
        setattr(loaded, name, _nothing)
