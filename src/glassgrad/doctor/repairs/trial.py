"""Run changed scripts, each in a process of its own: `python -m glassgrad.doctor.repairs.trial`.

The process reads one request per line from its standard input, as JSON, and answers each with a line. Where processes
can be forked, each script runs in a fork, so that the libraries are loaded once.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import runpy
import select
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad.doctor.repairs.figures import figures, gain

FORKS = hasattr(os, "fork")
PART, HOPE = 0.34, 0.2
"""The part of the printed lines after which a trial is compared with the control, and the gain that lets it go on."""


def main() -> None:
    """Answer requests until the input ends; without forks only one."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _quiet()
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        request = json.loads(line)
        for name in request["libraries"]:
            with contextlib.suppress(ImportError):
                __import__(name)
        out.write(json.dumps(_forked(request) if FORKS else _run(request)) + "\n")
        out.flush()
        if not FORKS:
            return


def _quiet() -> None:
    """Send what anybody prints nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    """Run a request in a fork; kill it when its time is over."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(math.ceil(request["seconds"]) + 5)  # should nobody be left to kill it
        try:
            answer = json.dumps(_run(request)).encode()
        except BaseException as error:  # noqa: BLE001 - whatever ends a script ends its trial
            answer = json.dumps({"ended": False, "printed": "", "fits": {}, "error": repr(error)}).encode()
        with os.fdopen(write, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(write)
    signal.signal(signal.SIGTERM, lambda *_: _end(child))
    answer = _awaited(read, request["seconds"])
    _kill(child)
    os.waitpid(child, 0)
    nothing = {"ended": False, "printed": "", "fits": {}, "error": "the time was over"}
    found: dict[str, Any] = json.loads(answer) if answer else nothing
    return found


def _kill(child: int) -> None:
    """Kill a fork and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _end(child: int) -> None:
    _kill(child)
    os._exit(0)


def _awaited(read: int, seconds: float) -> bytes:
    """Return what comes through a pipe until its other end closes, or the time is over."""
    ends, parts = time.monotonic() + seconds, list[bytes]()
    with os.fdopen(read, "rb", buffering=0) as pipe:
        while (left := ends - time.monotonic()) > 0:
            if not select.select([pipe], [], [], left)[0]:
                return b""
            part = pipe.read(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return b""


def _run(request: dict[str, Any]) -> dict[str, Any]:
    """Run the script of a request; return what it printed, and how well its outputs fit the targets."""
    from glassgrad.doctor.repairs.guard import shut
    from glassgrad.doctor.script import run_script

    _shift_seeds(request["shift"])
    folder = Path(request["folder"])
    os.chdir(folder)
    changed = folder / Path(request["path"]).name
    shut(folder)
    changed.unlink(missing_ok=True)  # it may be a link to the user's own
    changed.write_text(request["text"], encoding="utf-8")
    sys.path.insert(1, str(Path(request["path"]).resolve().parent))
    printed, errors = _Printed(request["control"]), io.StringIO()
    begun = time.perf_counter()
    fits, error = {}, ""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        if request["watched"]:
            watched, ended = run_script(changed, request["arguments"], "standard")
            fits = {name: value for one in watched for name, value in one.fits.items()}
            error = "" if ended else errors.getvalue().strip().rpartition("\n")[2]
        else:
            error = _run_plainly(changed, request["arguments"])
    seconds = time.perf_counter() - begun
    shown = printed.getvalue()[-60_000:]
    return {"ended": not error, "printed": shown, "fits": fits, "seconds": seconds, "error": error}


def _run_plainly(path: Path, arguments: list[str]) -> str:
    """Run a script as Python does; return the error that it ended with."""
    sys.argv = [str(path), *arguments]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Hopeless:
        return "no better than without the change"
    except SystemExit as stop:
        return "" if stop.code in {None, 0} else f"exit status {stop.code}"
    except Exception as error:  # noqa: BLE001 - the script's own error
        return f"{type(error).__name__}: {error}"
    return ""


class Hopeless(BaseException):
    """Ends a trial that is no better than the script without the change; no handler of the script catches it."""


class _Printed(io.StringIO):
    """What a script prints. After a part of the lines of the control it is compared with it."""

    def __init__(self, control: str) -> None:
        super().__init__()
        self._lines = control.splitlines()
        self._after = math.ceil(len(self._lines) * PART) if len(self._lines) > 2 else 0
        self._seen = 0

    def write(self, text: str) -> int:
        """Take a text; raise `Hopeless` at the line of the comparison if no figure is better."""
        count = super().write(text)
        before, self._seen = self._seen, self._seen + text.count("\n")
        if before < self._after <= self._seen:
            known = figures("\n".join(self._lines[: self._seen]), {})
            mine = figures(self.getvalue(), {})
            if known and not any(gain(one, mine.get(name)) > HOPE for name, one in known.items()):
                raise Hopeless
        return count


def _shift_seeds(shift: int) -> None:
    """Add a number to the seeds that the script sets."""
    if not shift:
        return

    def shifted(function: Any) -> Any:
        def seeded(seed: Any = None, *args: Any, **kwargs: Any) -> Any:
            return function(seed + shift if isinstance(seed, int) else seed, *args, **kwargs)

        return seeded

    for module, names in ((np.random, ("seed", "default_rng")), (random, ("seed",))):
        for name in names:
            setattr(module, name, shifted(getattr(module, name)))
    for library in ("torch", "glassgrad"):
        loaded = sys.modules.get(library)
        if loaded is not None:
            loaded.manual_seed = shifted(loaded.manual_seed)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
