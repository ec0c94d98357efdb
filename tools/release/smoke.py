"""Use an installed glassgrad as a stranger does: `python smoke.py PART TREE`, run in an empty folder.

TREE is a checkout whose pages are followed; nothing is imported from it. Warnings are errors here (-W error), except
those that say what a smaller installation does instead.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import json
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

NATIVE = importlib.util.find_spec("llvmlite") is not None


@contextlib.contextmanager
def told() -> Any:
    """Let the warning pass that compiled steps run as NumPy programs, where llvmlite is missing; no other one."""
    with warnings.catch_warnings():
        if not NATIVE:
            warnings.filterwarnings("ignore", ".*llvmlite.*")
        yield


def inventory(_tree: Path) -> None:
    """Print the installed packages as JSON."""
    parts = []
    for one in metadata.distributions():
        about = one.metadata
        parts.append({
            "name": about["Name"], "version": one.version, "requires": one.requires or [],
            "license": about.get("License-Expression") or about.get("License") or "",
            "classifiers": [text for text in about.get_all("Classifier", []) if text.startswith("License ::")],
        })  # fmt: skip  # a table
    print(json.dumps(parts))


def library(_tree: Path) -> None:
    """Train eagerly and compiled, save and load, differentiate twice; results are checked."""
    import numpy as np

    import glassgrad as gg
    from glassgrad import nn, optim

    assert Path(gg.__file__).is_relative_to(sysconfig.get_paths()["purelib"]), gg.__file__
    assert gg.__version__ == metadata.version("glassgrad")
    gg.manual_seed(0)
    points = gg.tensor(np.random.default_rng(0).normal(size=(64, 2)).astype("f"))
    labels = (points[:, 0] * points[:, 1] > 0).long()
    losses = {}
    for how in ("eager", "compiled"):
        gg.manual_seed(1)
        model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        optimizer = optim.AdamW(model.parameters(), lr=0.05)

        def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        with told():
            run = gg.compile(step) if how == "compiled" else step
            losses[how] = [run(points, labels).item() for _ in range(60)]
        assert losses[how][-1] < 0.3 * losses[how][0], losses[how]
        gg.save(model.state_dict(), f"{how}.safetensors")
        assert sorted(gg.load(f"{how}.safetensors")) == sorted(model.state_dict())
    assert np.allclose(losses["eager"], losses["compiled"], rtol=1e-3), losses
    x = gg.tensor(2.0, requires_grad=True)
    (slope,) = gg.autograd.grad(x**3, x, create_graph=True)
    assert gg.autograd.grad(slope, x)[0].item() == 12
    print("trains" + ("" if NATIVE else ", compiled steps as NumPy programs"))


def readme(_tree: Path) -> None:
    """Run the programs of the README that the wheel brings along."""
    text = str(metadata.metadata("glassgrad").get_payload()) or str(metadata.metadata("glassgrad")["Description"])
    programs = [one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import torch\n" not in one]
    assert len(programs) >= 2, text[:500]
    scope: dict[str, Any] = {}
    out = io.StringIO()
    with told(), contextlib.redirect_stdout(out):
        for program in programs:
            exec(compile(program, "README.md", "exec"), scope)  # noqa: S102 - the README's own programs
    assert re.search(r"^0\.\d{4}$", out.getvalue(), re.MULTILINE), out.getvalue()
    assert "def step" in out.getvalue(), out.getvalue()[-500:]
    print("README runs")


def quickstart(tree: Path) -> None:
    """Follow the quickstart: every example prints what the page says."""
    import glassgrad as gg

    text = (tree / "docs" / "quickstart.md").read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {"gg": gg, "__name__": "__main__"}, "quickstart.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    out: list[str] = []
    gg.manual_seed(0)
    with told():
        runner.run(test, out=out.append)
    assert runner.tries > 10, runner.tries
    assert not runner.failures, "".join(out)
    print("quickstart runs")


def command(_tree: Path) -> None:
    """Train by the command, resume, look at the run, and ask for the facts."""
    beside = Path(sys.executable).with_name("glassgrad.exe" if sys.platform == "win32" else "glassgrad")

    def glassgrad(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        process = subprocess.run(
            [str(beside), *arguments], capture_output=True, text=True, encoding="utf-8", check=False, env=environment
        )
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    assert glassgrad("--version").split() == ["glassgrad", metadata.version("glassgrad")]
    assert "accuracy" in glassgrad("train", "moons", "--steps", "200", "--run-dir", "run")
    assert "going on at step 200" in glassgrad("train", "moons", "--resume", "run", "--steps", "300")
    assert "run" in glassgrad("runs", ".")
    assert Path("run/report.html").stat().st_size > 10_000
    facts = json.loads(glassgrad("info", "--json"))
    assert (facts["versions"]["llvmlite"] == "not installed") == (not NATIVE), facts
    checks = glassgrad("info", "--bug").partition("### Checks")[2].partition("### Facts")[0]
    assert checks.count("works") == 5, checks
    assert ("No module named 'llvmlite'" in checks) == (not NATIVE), checks
    print("command trains")


def numpy_alone(tree: Path) -> None:
    """Run the program of the tests that needs nothing but NumPy."""
    runpy.run_path(str(tree / "tests" / "repo" / "numpy_alone.py"), run_name="__main__")


PARTS = {one.__name__: one for one in (inventory, library, readme, quickstart, command, numpy_alone)}

if __name__ == "__main__":
    PARTS[sys.argv[1]](Path(sys.argv[2]))
