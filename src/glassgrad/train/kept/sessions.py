"""run.json: the length of a run, and each process that worked on it: when, with which command, versions and machine.

The file records the origin of a run. Training does not depend on it, so a full disk does not end the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.data.atomic import write_atomically

RUN = "run.json"

_MOST = 100
"""The largest number of sessions that are kept: the first one and the last ones."""
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# The types of a session's entries; glassgrad does not write other entries.
_KINDS: dict[str, type] = {"from_step": int, "step": int, "command": list}
_KINDS |= {"began": str, "until": str, "ended": str, "reason": str}
_KINDS |= {"versions": dict, "machine": dict, "variables": dict}


@contextlib.contextmanager
def session(path: Path, facts: Mapping[str, Any], step: int) -> Iterator[dict[str, Any]]:
    """Record that a process works on the run at `path`, from `step` on, and finally how it ended.

    `facts` are the task's name, its number of steps and the name of its held-out examples. The block sets "ended" and
    "step" in the yielded dictionary; after an exception, the exception is the reason.
    """
    known = read_sessions(path)
    mine: dict[str, Any] = {"began": _now(), "from_step": step, "command": command(), **environment()}
    kept = [*known.get("sessions", []), mine]
    whole = {**known, **facts, "sessions": kept if len(kept) <= _MOST else [kept[0], *kept[1 - _MOST :]]}
    _write(path, whole)
    try:
        yield mine
    except KeyboardInterrupt:
        mine["ended"] = "interrupted"
        raise
    except errors.GlassgradError as error:
        mine["ended"] = "failed"
        mine["reason"] = str(error)
        raise
    except BaseException as error:
        mine["ended"] = "failed"
        mine["reason"] = f"{type(error).__name__}: {error}"
        raise
    finally:
        mine["until"] = _now()
        _write(path, whole)


def read_sessions(path: Path) -> dict[str, Any]:
    """Return the content of run.json; empty if it is missing or damaged."""
    try:
        found = json.loads((path / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("sessions", []), list):
        return {}
    found["sessions"] = [
        {key: value for key, value in one.items() if isinstance(value, _KINDS.get(key, object))}
        for one in found.get("sessions", [])
        if isinstance(one, dict)
    ]
    return found


def command() -> list[str]:
    """Return the command line of this process, quoted for a shell; empty in an interactive session."""
    program, *rest = sys.argv or [""]
    path = Path(program)
    if path.name == "__main__.py" and path.parent.name == "glassgrad":
        return ["glassgrad", *rest]
    if program in {"", "-", "-c"} or hasattr(sys, "ps1"):
        return []
    if path.name == "glassgrad":
        return ["glassgrad", *rest]
    return ["python", program, *rest] if path.suffix == ".py" else []


def environment() -> dict[str, Any]:
    """Return versions and machine: reproducing a run bit for bit depends on them."""
    import numpy as np

    versions = {"glassgrad": __version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in ("scipy", "llvmlite"):
        module = sys.modules.get(name)
        if module is not None:
            versions[name] = str(getattr(module, "__version__", ""))
    variables = {
        key: value for key, value in sorted(os.environ.items()) if key in _VARIABLES or key.startswith("GLASSGRAD_")
    }
    machine = {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": _cores(),
    }
    return {"versions": versions, "machine": machine, "variables": variables}


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(path: Path, whole: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):
        write_atomically(path / RUN, json.dumps(whole, indent=1).encode() + b"\n")
