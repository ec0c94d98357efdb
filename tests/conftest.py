"""Shared by all tests: one thread per worker, the place of sample data, golden files, and the number of workers."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Before NumPy is imported: several workers with several BLAS threads each would fight for the same cores.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

# If Python must not write bytecode, as in many containers, each of the hundreds of processes that tests start
# would compile the library anew: a second of processor time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

os.environ.setdefault("GLASSGRAD_FULL_TRACEBACK", "1")  # a failing test shows where in the library

import gc
import random
import signal
from collections.abc import Callable, Iterator

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from tests.thinning import NONE_OF, later, left_out

# A shell that starts the suite in the background has interrupts ignored, and every test of Ctrl-C would wait in vain.
for _name, _handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _handler)

GOLDEN = ROOT / "tests" / "golden"

# Deadlines measure the machine, not the code; a fixed sequence of examples keeps the suite the same from run to run.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None, print_blob=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write the golden files instead of comparing")
    parser.addoption("--native", action="store_true", help="native code, too, where tests are about tracing alone")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """No workers for single tests, files or a keyword: starting them costs more than they save."""
    named = [argument for argument in config.args if "::" in argument or argument.endswith(".py")]
    if (
        config.option.collectonly
        or config.option.keyword
        or (named and len(named) == len(config.args) and len(named) <= 2)
    ):
        return 0
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the wide part of the wide tables as slow, before -m deselects; a test that is named runs all its cases."""
    if not any(".py" in argument for argument in config.args):
        for item in later(items):
            item.add_marker(pytest.mark.later)
        for item in left_out(items):
            item.add_marker(pytest.mark.slow)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of slow tests alone, some of which take seconds to be collected, twice."""
    named = any(".py" in argument for argument in config.args)
    if config.option.markexpr != "not slow" or named or not collection_path.is_relative_to(ROOT / "tests"):
        return None
    return collection_path.relative_to(ROOT / "tests").as_posix() in NONE_OF or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no unreachable cycles while three million objects are made that all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Take what was collected out of Python's searches for unreachable cycles: three million objects in many a test."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a worker send one report of a test that passes, not three: sending takes longer than most tests do."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > _NOTEWORTHY:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


_NOTEWORTHY = 0.5  # seconds of a set-up, for the list of the slowest
_MANY = 100_000


@pytest.fixture(autouse=True, scope="module")
def _few_objects_to_search() -> None:
    """Take out, too, what earlier tests left for good: libraries that they imported, and caches."""
    if len(gc.get_objects(generation=2)) > _MANY:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _same_state() -> Iterator[None]:
    """Start every test from the same random state and floating-point warnings, whatever ran before on its worker."""
    import numpy as np

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  -- third-party code under test may use the legacy generator
    with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
        yield


@pytest.fixture
def before_bfloat16() -> Iterator[None]:
    """Let ops be those of a process that has never named bfloat16, where an earlier test of this one has."""
    from glassgrad.ops import narrow

    known = narrow.forget()
    yield
    if known:
        narrow.bfloat16()


@pytest.fixture
def numpy_target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `gg.compile` make NumPy programs where a test names no backend, in a fourth of the time that LLVM takes.

    For tests of what comes before code: tracing, guards, state, refusals. `make test-slow` runs them in native code.
    """
    from glassgrad.compile import backends

    chosen = backends.chosen
    if not request.config.getoption("--native"):
        monkeypatch.setattr(backends, "chosen", lambda name: chosen("numpy" if name == "auto" else name))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with names.txt and mnist-t10k; the test skips where it is absent."""
    folder = Path(os.environ.get("GLASSGRAD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no sample data: set GLASSGRAD_DATA to a folder with names.txt and mnist-t10k")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with tests/golden/NAME, or write it under --update-goldens."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no golden file {path.relative_to(ROOT)}; write it with --update-goldens"
        assert text == path.read_text(encoding="utf-8"), f"{path.relative_to(ROOT)} differs; --update-goldens if wanted"

    return check


@pytest.fixture
def single_threaded_torch() -> Iterator[None]:
    """One thread in PyTorch too, where a test compares times or bits."""
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
