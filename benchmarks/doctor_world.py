"""What the doctor says of faults that people reported: each program of one half, and its healthy twin.

Each runs in glassgrad and in PyTorch, as `glassgrad doctor script.py` would run it. A fault counts as named if one of
the first two findings has the cause *and* its line. Another warning or error is a symptom and is counted apart. An
alarm is a warning or an error about a healthy twin. The half in `tests/doctor/world/building` is there to build rules
on. The half in `tests/doctor/world/aside` runs with `--aside` only, when a piece of work ends.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import results

TITLE = "Reported faults that the doctor names"
WORLD = "tests.doctor.world"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "doctor.md"
HALVES = {False: "building", True: "aside"}
HEADS = {"ours": "glassgrad", "torch": "PyTorch"}
WORKERS, RENEWED = 2, 20


@dataclass(frozen=True)
class Verdict:
    """What came of one program in one library: "cause", "symptom" or "nothing", or "trouble" if it did not run.

    Attributes:
        said: the findings, in their order; `alarms`: those about the healthy twin.
        trouble: the error that ended it.
    """

    name: str
    library: str
    kind: str
    said: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    trouble: str = ""


def programs(aside: bool) -> list[Any]:
    """Return the programs of a half: those of every file in its folder."""
    package = importlib.import_module(f"{WORLD}.{HALVES[aside]}")
    files = (
        importlib.import_module(f"{package.__name__}.{one.name}")
        for one in pkgutil.iter_modules(package.__path__)
        if not one.name.startswith("test_")
    )
    return [program for file in files for program in file.PROGRAMS]


def judge(aside: bool, number: int, library: str, seconds: float) -> Verdict:
    """Run one program and its twin."""
    warnings.simplefilter("ignore")
    world, program = importlib.import_module(WORLD), programs(aside)[number]
    if library == "torch":
        importlib.import_module("torch").set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        try:
            found, named, alarms = world.judged(program, library, Path(folder), seconds)
        except Exception as error:  # noqa: BLE001 - counted and printed
            return Verdict(program.name, library, "trouble", trouble=f"{type(error).__name__}: {error}".strip())
    serious = any(one.severity != "info" for one in found)
    kind = "cause" if named else "symptom" if serious else "nothing"
    said = tuple(f"{one} {one.where}" for one in found)
    return Verdict(program.name, library, kind, said, tuple(f"{one} {one.where}" for one in alarms))


def verdicts(aside: bool, chosen: Sequence[int], libraries: Sequence[str], seconds: float) -> Iterator[Verdict]:
    """Judge programs, in processes that are made anew from time to time; yield the verdicts in order."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for begin in range(0, len(chosen), RENEWED):
        with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
            part = chosen[begin : begin + RENEWED]
            tasks = [pool.submit(judge, aside, number, library, seconds) for number in part for library in libraries]
            yield from (task.result() for task in tasks)


def line(verdict: Verdict) -> str:
    """One program in one line, with what was said of it if the cause was not named."""
    told = f"{verdict.kind:8}{'ALARM ' if verdict.alarms else ''}{verdict.name} ({verdict.library})"
    rest = [*(() if verdict.kind == "cause" else verdict.said[:4]), *verdict.alarms]
    return "\n".join([told, *(f"         {one}" for one in (*rest, *filter(None, [verdict.trouble])))])


def table(found: Sequence[Verdict]) -> str:
    """The counts by library."""
    rows = []
    for library, title in HEADS.items():
        mine = [one for one in found if one.library == library]
        if not mine:
            continue
        ran = [one for one in mine if one.kind != "trouble"]
        counts = [sum(one.kind == kind for one in mine) for kind in ("cause", "symptom", "nothing", "trouble")]
        shares = f"{counts[0] / max(len(mine), 1):.0%}", f"{(counts[0] + counts[1]) / max(len(mine), 1):.0%}"
        alarms = sum(bool(one.alarms) for one in ran)
        rows.append([title, *map(str, (len(mine), *counts)), *shares, f"{alarms} of {len(ran)}"])
    head = [
        "in",
        "programs",
        "cause and line",
        "symptom",
        "nothing",
        "did not run",
        "recall",
        "with symptoms",
        "alarms",
    ]
    return results.markdown_table(head, rows)


def measure(
    threads: int | None,
    rounds: int,
    *,
    aside: bool = False,
    seconds: float = 0,
    peers: Sequence[str] = (),
    words: Iterable[str] = (),
    show: Callable[[str], object] = print,
) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers; `words` choose programs by their names, `peers` the libraries.

    `seconds` is the time for trying changes of a program of which no finding names the cause, as with `--deeper`.
    """
    if aside:
        show("This runs the half kept aside. Do not build rules on what it shows.")
    names = [one.name for one in programs(aside)]
    wanted = list(words)
    chosen = [at for at, name in enumerate(names) if not wanted or any(word in name for word in wanted)]
    there = [one for one in HEADS if one == "ours" or importlib.util.find_spec("torch") is not None]
    libraries = [one for one in there if not peers or HEADS[one] in peers]
    found = []
    for verdict in verdicts(aside, chosen, libraries, seconds):
        found.append(verdict)
        show(line(verdict))
    half = "the half kept aside" if aside else "the half that the rules were built on"
    text = f"{len(chosen)} programs, {half}.\n\n{table(found)}"
    return TITLE, text, {"verdicts": [vars(one) for one in found]}


def write(text: str, command: str, aside: bool) -> None:
    """Put the table into docs/doctor.md, between the marks of this half."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = (f"<!-- doctor-world {HALVES[aside]}: {mark} -->" for mark in ("begin", "end"))
    body = f"{begin}\n`{command}`: {text}\n{end}"
    new, count = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: body, page, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"docs/doctor.md lacks the marks {begin} and {end}")
    PAGE.write_text(new, encoding="utf-8")
