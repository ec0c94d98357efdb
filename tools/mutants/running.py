"""Run a piece's tests: once to find the lines that each reaches, then in a forked child for every mutant.

The forking process has imported the package and collected the tests, and runs none of them: each child begins like a
fresh run of pytest, and runs only the tests that reach the changed lines, the fastest first, up to the first failure.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Self

import pytest

from tools.mutants import patching, reloading

PASSED, FAILED, IMPORT_AGAIN = 0, 1, 3  # how a child ends
WAIT = 120.0  # by the clock, for what sleeps; processor time is limited test by test, as others may use the machine
_MEMORY = 4 << 30  # more than a child needs on top of what was imported
Place = tuple[Hashable, int]  # the name of a code object and a line


@dataclass
class Reach:
    """What the unchanged tests did.

    Attributes:
        seconds: of processor time, by test.
        places: the code and lines that each test ran.
        starters: tests that start processes, in which nobody sees what runs.
        imported: the code and lines that ran before the first test.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    places: dict[str, set[Place]] = field(default_factory=dict)
    starters: set[str] = field(default_factory=set)
    imported: set[Place] = field(default_factory=set)

    def tests_of(self, places: Iterable[Hashable], lines: range) -> list[str]:
        """Return the tests that reach a change, the fastest first."""
        wanted = {(place, line) for place in places for line in lines}
        reaching = [name for name, seen in self.places.items() if name in self.starters or not seen.isdisjoint(wanted)]
        return sorted(reaching, key=lambda name: self.seconds[name])


class Tracer:
    """Notes which lines of some files run, by code object."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.seen: set[tuple[CodeType, int]] = set()

    def __enter__(self) -> Self:
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def places(self) -> set[Place]:
        """Return what ran since it was asked last."""
        seen, self.seen = self.seen, set()
        names = {code: patching.name_of(code) for code, _ in seen}
        return {(names[code], line) for code, line in seen}

    def _called(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in self.files:
            return None
        self.seen.add((frame.f_code, frame.f_lineno))
        return self._line

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self.seen.add((frame.f_code, frame.f_lineno))
        return self._line


class Runner:
    """A plugin of pytest that passes the collected tests to `use` instead of running them."""

    def __init__(self, use: Callable[[Runner], None], wanted: Callable[[str], bool]) -> None:
        self.use, self.wanted = use, wanted
        self.items: dict[str, pytest.Item] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        session.config.pluginmanager.unregister(name="terminalreporter")
        self.items = {item.nodeid: item for item in session.items if self.wanted(item.nodeid)}
        self.use(self)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        _end_if_failed(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        _end_if_failed(report)

    def run(self, names: Sequence[str], around: Callable[[str], contextlib.AbstractContextManager[None]]) -> None:
        """Run tests in this order; the process ends at the first that fails."""
        items = [self.items[name] for name in names]
        for item, following in zip(items, [*items[1:], None], strict=True):
            with around(item.nodeid):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _end_if_failed(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.failed:
        with contextlib.suppress(OSError):
            Path(os.environ["MUTANTS_LOG"]).write_text(f"{report.nodeid}\n{report.longreprtext}\n", encoding="utf-8")
        os._exit(FAILED)


def reach_of(runner: Runner, files: set[str]) -> Reach:
    """Run all tests and note what they do."""
    found = Reach()
    tracer = Tracer(files)

    @contextlib.contextmanager
    def noted(name: str) -> Any:
        started, begin = _children(), time.process_time()
        with tracer:
            yield
        found.seconds[name] = time.process_time() - begin + _children() - started
        found.places[name] = tracer.places()
        if _children() > started:
            found.starters.add(name)

    runner.run(list(runner.items), noted)
    return found


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def limited(seconds: float) -> Any:
    """End the process when what is inside takes many times the seconds that it took before."""
    signal.setitimer(signal.ITIMER_PROF, 2 + 5 * seconds)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def lines_of(source: str, line: int) -> range:
    """Return the lines of the innermost statement that a line belongs to; of one with a body, those before it."""
    best = range(line, line + 1)
    size = 1 << 30
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt | ast.match_case | ast.ExceptHandler):
            body = getattr(node, "body", None)
            first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            last = max(first, body[0].lineno - 1) if body else (node.end_lineno or first)
            if first <= line <= last and last - first < size:
                best, size = range(first, last + 1), last - first
    return best


def in_child(folder: Path, work: Callable[[], None], seconds: float) -> int | None:
    """Run `work` in a forked process with folders of its own; return how it ended, None when time was up."""
    own = Path(tempfile.mkdtemp(dir=folder))
    child = os.fork()
    if child == 0:
        status = FAILED
        try:
            os.setpgid(0, 0)
            _settle(own)
            work()
            status = PASSED
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else FAILED
        finally:
            os._exit(status)
    end = time.monotonic() + seconds
    pause = 0.001
    try:
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
                    return None
                return os.waitstatus_to_exitcode(status)
            time.sleep(pause)
            pause = min(0.02, 1.2 * pause)
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):  # and the processes that it started
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        shutil.rmtree(own, ignore_errors=True)


def _settle(own: Path) -> None:
    """Keep what a mutant does with files and memory to itself: code that another one left must not be run."""
    os.environ["XDG_CACHE_HOME"] = str(own / "cache")
    os.environ["TMPDIR"] = tempfile.tempdir = str(own)
    with contextlib.suppress(OSError):  # another system keeps count of memory elsewhere, or not
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


class Warm:
    """Tries mutants, one after the other, in children of a process that has collected the tests."""

    def __init__(self, link: Any, folder: Path, package: Path, files: Sequence[str]) -> None:
        self.link, self.folder, self.package = link, folder, package
        self.files = {str(package / file) for file in files}
        self.functions: patching.Functions = {}
        self.reach = Reach()
        self.again: dict[Path, bool] = {}
        self.runner: Runner

    def serve(self, runner: Runner, imported: set[Place]) -> None:
        """Tell what the unchanged tests do, then answer with how each mutant ends."""
        self.runner = runner
        kept = self.folder / "reach"
        ended = in_child(self.folder, lambda: kept.write_bytes(pickle.dumps(reach_of(runner, self.files))), 900.0)
        if ended != PASSED:
            self.link.send(None)
            return
        self.reach = pickle.loads(kept.read_bytes())  # noqa: S301 - written by the line above
        self.reach.imported = imported
        self.functions = patching.functions_of(self.files)
        gc.collect()
        gc.freeze()
        self.link.send(self.reach)
        while True:
            file, source, text, line = self.link.recv()
            self.link.send(self._outcome(self.package / file, source, text, line))

    def _outcome(self, path: Path, source: str, text: str, line: int) -> str:
        try:
            change = patching.change(path, source, text)
        except SyntaxError:
            return "no mutant"
        if not change.replaced and not change.imported:
            return "no mutant"
        lines = lines_of(source, line)
        names = self.reach.tests_of(change.places, lines)
        while_imported = any((place, one) in self.reach.imported for place in change.places for one in lines)
        ended = PASSED
        if names and not change.imported:
            ended = self._ended(path, text, lambda: change.apply(self.functions), names)
        if change.imported or ended == IMPORT_AGAIN or (ended == PASSED and while_imported):
            if not self._runs_again(path, source):
                return "import again"
            names = self._concerned(path, source, line)
            ended = self._ended(path, text, lambda: reloading.run_again(path, text), names) if names else PASSED
        if ended is None:
            return "timed out"
        if ended != PASSED:
            return "killed"
        return "survived" if names else "not reached"

    def _runs_again(self, path: Path, source: str) -> bool:
        """Tell whether a file can be run again where it was imported: with its own text, its tests still pass."""
        if path not in self.again:
            names = sorted({name for name, seen in self.reach.places.items() for one, _ in seen if one[0] == str(path)})
            ended = self._ended(path, source, lambda: reloading.run_again(path, source), names)
            self.again[path] = ended == PASSED
        return self.again[path]

    def _concerned(self, path: Path, source: str, line: int) -> list[str]:
        """Return the tests that a change of what a module computes while it is imported concerns, the fastest first."""
        found = reloading.concerned(path, source, line)
        names = []
        for name, seen in self.reach.places.items():
            here = {place for place, _ in seen if place[0] == str(path)}
            case = name.rpartition("[")[2].split("-")[0].rstrip("]")
            if here if found is None else (here & found[0] or case in found[1]):
                names.append(name)
        return sorted(names, key=lambda name: self.reach.seconds[name])

    def _ended(self, path: Path, text: str, put: Callable[[], None], names: list[str]) -> int | None:
        def work() -> None:
            try:
                put()
            except ValueError:  # it closes over other names than before
                sys.exit(IMPORT_AGAIN)
            self.runner.run(names, lambda name: limited(self.reach.seconds[name]))

        before = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")  # for the processes that tests start
        try:
            return in_child(self.folder, work, WAIT + 20 * sum(self.reach.seconds[name] for name in names))
        finally:
            path.write_text(before, encoding="utf-8")
