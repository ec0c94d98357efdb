"""Run public programs written for PyTorch unchanged, under PyTorch and under glassgrad, and compare them.

    python tools/public_programs.py LIST --checkouts FOLDER --results FOLDER [--only TEXT] [--again] [--plain]

LIST is a file of JSON lines; the fields of `Program` describe a line. You make the checkouts, `FOLDER/owner+name`,
yourself; nothing of them belongs to this project. Each run works on a copy, in its own process, with limits of time and
memory and without a network; `public/standins` provides data.

Each program runs four times: under both libraries unchanged (does it run? how fast?) and under both with equal random
numbers (`public/equal.py`: does it give the same losses?). The table of results is `RESULTS/status.tsv`.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a program, this file finds its neighbours

from tools.public import compare, data, notebook

TOOLS = Path(__file__).resolve().parent
CHILD = TOOLS / "public" / "child.py"

LIBRARIES = ("torch", "glassgrad")
CURVE = 60  # backward passes with equal random numbers
EPISODES = "reinforcement learning"  # whose steps take as long as the episodes that are drawn
LONGER = 4  # times the limit for PyTorch where it is not far enough to compare
BEFORE = (  # modules that many programs import, or that one of the libraries imports at their first step
    "torch._dynamo",
    "glassgrad.compile.eager_kernel",
    "glassgrad.compile.native.products",
    "torch.distributions",
    "torch.optim",
    "torch.utils.data",
    "matplotlib.pyplot",
    "PIL.Image",
    "sklearn.datasets",
    "sklearn.model_selection",
    "sklearn.preprocessing",
    "scipy.sparse",
    "pandas",
    "gymnasium",
    "torchvision",
)
OUTPUT = 1 << 20  # characters compared of what a program prints
BIG = 20 << 20  # bytes of a file that is not copied
COLUMNS = ("program", "kind", "pytorch", "glassgrad", "class", "where", "curve", "text", "ratio")


@dataclass
class Program:
    """One line of the list; its name is also the name of its row in the table."""

    repository: str
    commit: str
    file: str
    kind: str  # what it trains
    licence: str = ""  # as far as the repository says
    arguments: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)  # where imports are looked up: in the checkout, or other checkouts
    folders: list[str] = field(default_factory=list)  # that it expects to write to
    files: dict[str, str] = field(default_factory=dict)  # that it expects to read, and which of `public/data.py`
    start: str = ""  # the folder of the checkout that it starts in, where not its own
    gym: str = "old"  # or "new": which calls of gym it makes
    data: str = "small"  # or "whole": as many examples as in the true data sets
    seconds: float = 20  # of the processor's time

    @property
    def checkout(self) -> str:
        """The name of its folder."""
        return self.repository.replace("/", "+")

    @property
    def name(self) -> str:
        """Repository and file."""
        return f"{self.repository}:{self.file}"


@dataclass
class Runner:
    """The settings of the runs."""

    checkouts: Path
    results: Path
    python: str
    by: list[str]
    source: Path
    sockets: Path
    seconds: float | None = None
    threads: int = 1
    before: tuple[str, ...] = BEFORE

    def place(self, program: Program, library: str, mode: str) -> Path:
        """Return the folder for the records of one run."""
        return self.results / program.checkout / program.file.replace("/", "+").replace(" ", "_") / f"{library}-{mode}"

    def serving(self, library: str) -> subprocess.Popen[bytes]:
        """Start the server of a library; its programs have no network."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "GLASSGRAD_CACHE_DIR") if name in os.environ}
        paths = [TOOLS / "public" / "standins", *([self.source] if library == "glassgrad" else [])]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(self.threads))
        environment = (
            kept
            | threads
            | {
                "PYTHONPATH": os.pathsep.join(map(str, paths)),
                "MPLBACKEND": "Agg",
                "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONIOENCODING": "utf-8",
                "MPLCONFIGDIR": str(self.results / "matplotlib"),
            }
        )
        command = [*_isolated(), self.python, str(CHILD), "serve", self.address(library), library, *self.before]
        server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        while not Path(self.address(library)).exists():
            if server.poll() is not None:
                raise SystemExit(f"the server of {library} did not start")
            time.sleep(0.1)
        return server

    def address(self, library: str) -> str:
        """Return the socket of a library's server."""
        return str(self.sockets / library)

    def run(self, program: Program, mode: str, libraries: Iterable[str] = LIBRARIES, longer: float = 1) -> list[Any]:
        """Run a program under each library, up to the first one under which it stops; return the records."""
        with tempfile.TemporaryDirectory() as folder:
            chain = []
            for library in libraries:
                work = Path(folder) / library / program.checkout
                request = self.request(program, library, mode, work)
                request["seconds"] = longer * (self.seconds or program.seconds)
                chain += [self.address(library), json.dumps(request)]
            subprocess.run([*self.by, self.python, "-SE", str(CHILD), "chain", *chain], check=False)
        return [self.record(program, library, mode) for library in libraries]

    def request(self, program: Program, library: str, mode: str, work: Path) -> dict[str, Any]:
        """Copy the checkout of a program for one run; return the request to the server."""
        place = self.place(program, library, mode)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        checkout = self.checkouts / program.checkout
        shutil.copytree(checkout, work, ignore=_heavy, symlinks=True, ignore_dangling_symlinks=True)
        file = work / program.file
        if file.suffix == ".ipynb":
            file = file.with_name(file.stem.replace(" ", "_") + "_notebook.py")
            file.write_text(notebook.program(work / program.file), encoding="utf-8")
        start = work / program.start if program.start else file.parent
        for folder in program.folders:
            (start / folder).mkdir(parents=True, exist_ok=True)
        for name, kind in program.files.items():
            (start / name).parent.mkdir(parents=True, exist_ok=True)
            data.MAKERS[kind](start / name)
        return {
            "program": str(file),
            "folder": str(start),
            "arguments": program.arguments,
            "mode": mode,
            "paths": [str(path) for path in self.paths(program, work)],
            "record": str(place / "record.json"),
            "steps": CURVE if mode == "equal" else 0,
            "environment": {"HOME": str(work), "GYM_API": program.gym, "PUBLIC_DATA": program.data},
        }

    def paths(self, program: Program, work: Path) -> list[Path]:
        """Return the folders in which a program's imports are looked up, in addition to its own folder."""
        return [work, *(work / path if (work / path).exists() else self.checkouts / path for path in program.paths)]

    def record(self, program: Program, library: str, mode: str) -> dict[str, Any]:
        """Return the record of a run; without one, the process ended early."""
        place = self.place(program, library, mode)
        try:
            return dict(json.loads((place / "record.json").read_text(encoding="utf-8")))
        except (FileNotFoundError, json.JSONDecodeError):
            file = place / "err.txt"
            said = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
            last = [line for line in said.splitlines() if line.strip()][-1:]
            return {
                "end": "broken",
                "error": "".join(last)[:300],
                "where": "",
                "losses": [],
                "times": [],
                "seconds": 0.0,
            }

    def printed(self, program: Program, library: str, mode: str) -> str:
        """Return the output of a run."""
        with (self.place(program, library, mode) / "out.txt").open(encoding="utf-8", errors="replace") as out:
            return out.read(OUTPUT)

    def whole(self, program: Program, *, plain: bool) -> dict[str, str]:
        """Run a program under both libraries in both modes; return its row of the table."""
        theirs, ours = self.run(program, "plain")
        if theirs["end"] == "seconds" and not theirs["losses"]:
            theirs, ours = self.run(program, "plain", longer=LONGER)
        row = dict.fromkeys(COLUMNS, "") | {"program": program.name, "kind": program.kind, "pytorch": _end(theirs)}
        if _stopped(theirs) or not theirs["losses"]:
            return row | {"class": theirs["error"], "where": theirs["where"]}
        if _stopped(ours) and theirs["end"] == "seconds" and len(ours["losses"]) >= len(theirs["losses"]):
            (theirs,) = self.run(program, "plain", LIBRARIES[:1], longer=LONGER)  # does it stop there, too?
        row |= {"pytorch": _end(theirs), "glassgrad": _end(ours), "class": ours["error"], "where": ours["where"]}
        if _stopped(theirs):
            return row | {"glassgrad": "", "class": theirs["error"], "where": theirs["where"]}
        if not _stopped(ours):
            found = compare.ratio(ours, theirs)
            row["ratio"] = f"{found[0]:.2f} {found[1]}" if found else ""
            if not plain:
                row |= self.curve(program)
        return row

    def all(self, chosen: list[Program], jobs: int, minutes: float, way: Callable[[Program], dict[str, str]]) -> None:
        """Run programs and write each row of the table as soon as it is known; start none after some minutes."""
        end = time.monotonic() + 60 * minutes
        with ThreadPoolExecutor(jobs) as pool:
            for done in as_completed(
                [pool.submit(lambda one=one: end > time.monotonic() and way(one)) for one in chosen]
            ):
                row = done.result()
                if not row:
                    continue
                with (self.results / "lock").open("w") as lock:  # another run may write to the same table
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    written(self.results, table(self.results) | {row["program"]: row})
                print("  ".join(" ".join(row[column].split()) for column in COLUMNS), flush=True)

    def curve(self, program: Program) -> dict[str, str]:
        """Run with equal random numbers; return the columns of the table on the losses and the text."""
        theirs, ours = self.run(program, "equal")
        if not theirs["losses"] and not _stopped(theirs):
            return {"curve": "none: PyTorch makes no step in the time", "text": ""}
        if _stopped(ours) or _stopped(theirs):
            return {"curve": f"{_end(theirs)} / {_end(ours)}: {ours['error'] or theirs['error']}"}
        found = compare.curves(ours["losses"], theirs["losses"])
        words = f"{found.verdict} {found.agreed}/{found.common}"
        if found.verdict not in {"same", "none"}:
            words += f" (first {found.first:.0e}; last {found.last[0]:.4g}, PyTorch {found.last[1]:.4g})"
        pair = compare.texts(*(self.printed(program, library, "equal") for library in reversed(LIBRARIES)))
        row = {"curve": words, "text": "" if pair is None else f"{pair[0]!r} instead of {pair[1]!r}"}
        equal = compare.of_equal_draws(ours, theirs) if program.kind == EPISODES else ""
        return row | ({"ratio": equal} if equal else {})


def _heavy(folder: str, names: list[str]) -> list[str]:
    """Return the names of the files that a copy leaves out: the largest ones."""
    paths = [Path(folder) / name for name in names]
    return [path.name for path in paths if path.is_file() and path.stat().st_size > BIG]


def _isolated() -> list[str]:
    """Return the command under which a process has no network."""
    command = ["unshare", "-n"]
    if shutil.which("unshare") and subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:
        return command
    raise SystemExit("foreign programs run only without a network: `unshare -n` does not work here")


def _before(end: float, way: Callable[[Program], dict[str, str]], program: Program) -> dict[str, str] | None:
    """Run a program, unless it is too late."""
    return way(program) if time.monotonic() < end else None


def _stopped(record: dict[str, Any]) -> bool:
    """Return whether a program ended with an error."""
    return record["end"] in {"error", "broken"}


def _end(record: dict[str, Any]) -> str:
    """Return how a run ended and the number of its backward passes."""
    words = {
        "finished": "runs",
        "seconds": "runs to the limit",
        "steps": "runs",
        "error": "stops",
        "broken": "breaks off",
    }
    return f"{words[record['end']]}, {len(record['losses'])} steps"


def programs(file: Path) -> list[Program]:
    """Read a list."""
    return [Program(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def page(file: Path, results: Path) -> str:
    """Return the results of the programs of a list as a table for a page of documentation.

    A program that stops under PyTorch is left out.
    """
    rows = table(results)
    lines = ["| program | trains | result | losses | time |", "|---|---|---|---|---|"]
    for one in programs(file):
        row = rows.get(one.name, dict.fromkeys(COLUMNS, ""))
        result = row["glassgrad"].partition(",")[0]
        if not result:
            continue
        cells = f"{one.repository}, `{one.file}`", one.kind, result, row["curve"].partition(" (")[0], row["ratio"]
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def table(results: Path) -> dict[str, dict[str, str]]:
    """Read the table of results by program."""
    file = results / "status.tsv"
    if not file.exists():
        return {}
    lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    return {line[0]: dict(zip(COLUMNS, line, strict=True)) for line in lines}


def written(results: Path, rows: dict[str, dict[str, str]]) -> None:
    """Write the table of results in one write."""
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(" ".join(row[column].split()) for column in COLUMNS) for _name, row in sorted(rows.items())]
    file = results / "status.tsv.part"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    file.replace(results / "status.tsv")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("list", type=Path)
    found.add_argument("--checkouts", type=Path, required=True)
    found.add_argument("--results", type=Path, required=True)
    found.add_argument(
        "--python", default=sys.executable, help="an interpreter with PyTorch and the packages that programs import"
    )
    found.add_argument(
        "--source", type=Path, default=TOOLS.parent / "src", help="the folder from which glassgrad is imported"
    )
    found.add_argument("--by", default="", help="a command in front of each run, such as `nice`")
    found.add_argument("--jobs", type=int, default=1)
    found.add_argument("--only", default="", help="a part of the program's name")
    found.add_argument("--again", action="store_true", help="also those that have a result")
    found.add_argument("--plain", action="store_true", help="without the runs with equal random numbers")
    found.add_argument("--curves", action="store_true", help="only these, for programs that ran without them")
    found.add_argument("--page", action="store_true", help="print the results as a table in Markdown, and run nothing")
    found.add_argument("--minutes", type=float, default=math.inf, help="start no program after these")
    found.add_argument("--seconds", type=float, help="the limit of a run")
    found.add_argument("--threads", type=int, default=1)
    return found


def main() -> None:
    """Run the programs of a list that have no result yet."""
    given = parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the servers, too
    if given.page:
        print(page(given.list, given.results))
        return
    rows = table(given.results)
    chosen = [one for one in programs(given.list) if given.only in one.name]
    if given.curves:
        chosen = [one for one in chosen if one.name in rows and rows[one.name]["glassgrad"].startswith("runs")]
    missing = "curve" if given.curves else "program"
    chosen = [one for one in chosen if given.again or not rows.get(one.name, {}).get(missing)]
    with tempfile.TemporaryDirectory() as sockets:
        runner = Runner(
            given.checkouts.resolve(),
            given.results.resolve(),
            given.python,
            given.by.split(),
            given.source.resolve(),
            Path(sockets),
            given.seconds,
            given.threads,
        )
        servers = [runner.serving(library) for library in LIBRARIES]
        try:
            if given.curves:
                runner.all(chosen, given.jobs, given.minutes, lambda one: rows[one.name] | runner.curve(one))
            else:
                runner.all(chosen, given.jobs, given.minutes, lambda one: runner.whole(one, plain=given.plain))
        finally:
            for server in servers:
                server.terminate()


if __name__ == "__main__":
    main()
