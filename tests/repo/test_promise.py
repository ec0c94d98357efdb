"""The promise of docs/stability.md: public names stay as they are listed, and deprecated ones go when they should."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import glassgrad as gg
from glassgrad.base.deprecation import DEPRECATIONS, overdue
from glassgrad.errors.packages import PackageError
from tests.versions import since_numpy
from tools import promise


def absent(lines: list[str]) -> list[str]:
    """Return those lines whose module needs an extra that is not installed here."""
    gone = []
    for name in {line.split("(")[0].split(":")[0] for line in lines}:
        module = ".".join(name.split(".")[:2])
        try:
            importlib.import_module(module)
        except PackageError:
            gone.append(name)
        except ImportError:  # no module, a name of the package itself
            continue
    return [line for line in lines if line.split("(")[0].split(":")[0] in gone]


@since_numpy
def test_public_names_are_those_of_the_list() -> None:
    """`python tools/promise.py` writes the list anew, and refuses what breaks a program."""
    kept = promise.kept()
    extra = set(absent(kept))
    change = promise.compared([line for line in kept if line not in extra], promise.lines())
    assert not change.broken, "these break a program; docs/stability.md says what to do:\n" + "\n".join(change.broken)
    assert not change.grown, "run python tools/promise.py, and list these in the changelog:\n" + "\n".join(change.grown)


def test_the_list_holds_names_of_every_kind() -> None:
    lines = promise.kept()
    assert len(lines) == len(set(lines))
    assert lines == sorted(lines)
    shown = {
        "glassgrad.nn.Linear(in_features, out_features, bias=True, device=None, dtype=None)",
        "glassgrad.compile(",
        "glassgrad.tanh(",
        "glassgrad.Tensor.backward(",
        "glassgrad.Tensor.grad",
        "glassgrad.pi: 3.141592653589793",
        "glassgrad.train.Trainer.fit(",
        "glassgrad.errors.ShapeError(*args)",
    }
    assert [one for one in shown if not any(line.startswith(one) for line in lines)] == []
    assert [line for line in lines if " at 0x" in line or "object object" in line] == []


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        ("f(x)", "f(x, *, y=1)", True),
        ("f(x, y=1)", "f(x, y=1, z=2)", True),
        ("f(x, y=(1, 2), z='a, b')", "f(x, y=(1, 2), z='a, b', *rest)", True),
        ("f(x, *, y=1)", "f(x, y=1)", True),
        ("f(x, **more)", "f(x, y=1, **more)", True),
        ("f(x)", "f(x, y)", False),
        ("f(x, y=1)", "f(x, y=2)", False),
        ("f(x, y=1)", "f(x, *, y=1)", False),
        ("f(x, y)", "f(y, x)", False),
        ("f(x, *rest)", "f(x)", False),
        ("f(x, **more)", "f(x)", False),
        ("f(x)", "f", False),
        ("c: 1", "c: 2", False),
    ],
)
def test_what_fits(before: str, after: str, fits: bool) -> None:
    assert promise.fits(before, after) == fits
    assert bool(promise.compared([before], [after]).broken) != fits


def test_names_that_go_and_names_that_come() -> None:
    change = promise.compared(["a(x)", "b(x)"], ["b(x)", "c(x)"])
    assert change.broken == ["a(x)  is gone"]
    assert change.grown == ["c(x)"]


@pytest.mark.slow
def test_a_signature_is_written_the_same_in_every_process() -> None:
    """Nothing of addresses, hash seeds or the order of imports gets into the list."""
    program = "from tools import promise; print(*promise.lines(), sep='\\n')"
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=promise.ROOT, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == promise.lines()


# --- names that go ----------------------------------------------------------------------------------


def import_everything() -> None:
    for module in pkgutil.walk_packages(gg.__path__, "glassgrad."):
        if not module.name.endswith("__main__") and ".programs" not in module.name and ".starters" not in module.name:
            try:
                importlib.import_module(module.name)
            except PackageError:
                continue


def test_no_name_outlives_its_announcement() -> None:
    import_everything()
    assert len(DEPRECATIONS) >= 2
    assert [f"{one.name} was to go in {one.removed_in}" for one in overdue(gg.__version__)] == []


@pytest.mark.parametrize(("version", "due"), [("1.9.9", False), ("2.0.0.dev1", True), ("2.0", True), ("10.0", True)])
def test_a_name_whose_version_has_come_is_found(version: str, due: bool) -> None:
    import_everything()
    assert ("nn.utils.clip_grad_norm" in [one.name for one in overdue(version)]) == due


def test_a_name_warns_for_a_minor_version_at_least() -> None:
    """docs/stability.md: announced in one version, removed in a later major one."""
    import_everything()
    for one in DEPRECATIONS.values():
        assert int(one.removed_in.split(".")[0]) > int(one.since.split(".")[0]), one
        assert one.removed_in.split(".")[1:] in ([], ["0"]), one
