"""CONTRIBUTING.md lists the files of a new addition: each recipe is performed in a copy of the tree, and works there.

All recipes share one copy and the child processes share what they import, so that this stays quick.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.repo.recipes import RECIPES, Edit
from tools.sources import ROOT, python_files

COPIED = ("src", "tests", "docs/sitegen", "tools")
FILES = ("pyproject.toml", "docs/layers.json", "docs/opinfo.json")
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def files_named(recipe: str) -> list[str]:
    """The files that the numbered steps of a recipe begin with; <name> in them stands for any."""
    section = GUIDE.split(f"### {recipe}\n", 1)[1].split("\n### ", 1)[0].split("\n## ", 1)[0]
    return [re.sub(r"<\w+>", "*", path) for path in re.findall(r"^\d\. `([^`]+)`", section, re.MULTILINE)]


def perform(edit: Edit, root: Path) -> None:
    """Write an edit into the copy."""
    path = root / edit.path
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert edit.before in text, f"{edit.path} has no {edit.before!r}"
    place = text.index(edit.before) if edit.before else len(text)
    path.write_text(text[:place] + edit.text + text[place:], encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with every recipe performed in it."""
    root = tmp_path_factory.mktemp("tree")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("golden", "__pycache__"))
    for name in FILES:
        shutil.copy2(ROOT / name, root / name)
    for file in python_files("src"):  # with its bytecode, which an edited file outdates: compiling all takes seconds
        code, place = cache_from_source(str(file)), cache_from_source(str(root / file.relative_to(ROOT)))
        if Path(code).exists():
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(code, place)
    for edits in RECIPES.values():
        for edit in edits:
            perform(edit, root)
    return root


def child(copy: Path, *arguments: str) -> str:
    """Run Python on the copy and return what it prints."""
    paths = os.pathsep.join(str(copy / part) for part in ("src", ".", "docs"))
    cache = {"GLASSGRAD_CACHE_DIR": str(copy / "cache")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy, env={**os.environ, **cache, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip  # one call
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_files_are_those_that_the_guide_names(recipe: str) -> None:
    named, touched = files_named(recipe), {edit.path for edit in RECIPES[recipe]}
    assert [path for path in touched if not any(fnmatch(path, name) for name in named)] == []
    assert [name for name in named if not any(fnmatch(path, name) for path in touched)] == []


OP = """
import numpy as np
import glassgrad as gg

x = gg.tensor(np.linspace(-2, 2, 12).reshape(3, 4), requires_grad=True)
plain = x.detach().numpy()
assert np.allclose(gg.cubed(x).detach(), plain**3) and np.allclose(x.cubed().detach(), plain**3)
assert gg.autograd.gradcheck(gg.cubed, (x,)) and gg.autograd.gradgradcheck(gg.cubed, (x,))
assert np.allclose(gg.func.vmap(gg.cubed)(x.detach()), plain**3)

def step(x):
    return gg.cubed(x).sum()

for backend in ("llvm", "numpy"):
    compiled = gg.compile(gg.func.value_and_grad(step), backend=backend)
    value, slope = compiled(x.detach())
    assert np.allclose(value, (plain**3).sum()) and np.allclose(slope, 3 * plain**2)
assert "cubed" in compiled.source, compiled.source
space = {}
exec(compile(compiled.source, "printed", "exec"), space)
value, slope = next(space[name] for name in ("step",) if name in space)(plain.copy())
assert np.allclose(value, (plain**3).sum()) and np.allclose(slope, 3 * plain**2)

from sitegen import optable
row = next(op for op in optable.public_ops() if op.name == "cubed")
assert (row.formula, row.derivative, row.family) == ("x**3", "3 * x**2", "elementwise")
assert "cubed" in optable.page()
"""

LAYER = """
import numpy as np
import glassgrad as gg
from glassgrad import nn

layer, x = nn.Scaled(4), gg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
assert np.allclose(layer(x).detach(), nn.functional.scaled(x, layer.weight).detach())
assert gg.autograd.gradcheck(nn.functional.scaled, (x, gg.tensor(np.ones(4), requires_grad=True)))
assert list(layer.state_dict()) == ["weight"] and repr(layer) == "Scaled(4)"
other = nn.Scaled(4)
other.load_state_dict({"weight": gg.tensor([1.0, 2.0, 3.0, 4.0])})
compiled = gg.compile(lambda x: other(x))
assert np.allclose(compiled(x.detach()).detach(), x.detach().numpy() * [1, 2, 3, 4]) and "weight" in compiled.source
assert {"Scaled"} <= set(nn.__all__) and "scaled" in nn.functional.__all__ and "Scaled" in dir(nn)

from sitegen import layertable
assert "<b>Scaled</b>" in layertable.page()
"""

OPTIMIZER = """
import numpy as np
import glassgrad as gg
from glassgrad import nn, optim

def trained(compiled):
    gg.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = optim.SignSGD(model.parameters(), lr=0.5)
    schedule = optim.lr_scheduler.InverseLR(optimizer)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    run, rates = gg.compile(step) if compiled else step, []
    for at in range(4):
        run(gg.ones(5, 3) * (at + 1))
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    if compiled:
        run.assert_max_traces(1)
        assert "sign" in run.source
    assert optimizer.state_dict()["param_groups"][0]["lr"] == rates[-1]
    saved = schedule.state_dict()
    schedule.load_state_dict(saved)
    assert saved["last_epoch"] == 4
    return rates, model.weight.detach().numpy().copy()

(rates, eager), (same, compiled) = trained(False), trained(True)
assert np.allclose(rates, [0.25, 0.5 / 3, 0.125, 0.1]) and rates == same and np.allclose(eager, compiled, atol=1e-6)

from sitegen import layertable
assert "<b>SignSGD</b>" in layertable.page() and "<b>InverseLR</b>" in layertable.page()
"""

REWRITE_AND_FINDING = """
import numpy as np
import glassgrad as gg
from glassgrad.compile.ir.passes import run
from glassgrad.doctor import check_up

x = gg.tensor([-1.0, 2.0])
compiled = gg.compile(lambda x: abs(abs(x)) + 1)
assert compiled(x).tolist() == [2.0, 3.0]
assert str(run(compiled.graph)).count("abs(") == 1, run(compiled.graph)

gg.manual_seed(0)
model = gg.nn.Sequential(gg.nn.Linear(6, 8), gg.nn.ReLU(), gg.nn.Linear(8, 3))
batch = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32), np.array([0, 1, 2, 1])
rules = [{one.rule for one in check_up(model, tuple(part[:n] for part in batch)).findings} for n in (1, 4)]
assert "one example" in rules[0] and "one example" not in rules[1], rules
"""

STUBS = """
import importlib
from tools.stubs import SERVED, stub
assert "from glassgrad.optim.sign_sgd import SignSGD as SignSGD" in stub("optim/__init__.pyi")
"""


@pytest.mark.parametrize(
    "program", [OP, LAYER, OPTIMIZER, REWRITE_AND_FINDING + STUBS], ids=["op", "layer", "optimizer", "rule"]
)
def test_what_a_recipe_adds_works_everywhere(copy: Path, program: str) -> None:
    child(copy, "-c", program)


def test_a_task_is_a_command(copy: Path) -> None:
    text = child(copy, "-m", "glassgrad", "train", "parabola", "--help")
    assert "Teach a small network the parabola" in text
    assert "--hidden" in text
    out = child(copy, "-m", "glassgrad", "train", "parabola", "--engine", "eager", "--run-dir", "run")
    assert float(re.search(r"final loss ([\d.]+)", out)[1]) < 0.1
    assert (copy / "run" / "model.safetensors").exists()


@pytest.mark.slow
def test_the_generic_tests_of_ops_and_layers_find_what_was_added(copy: Path) -> None:
    files = (
        "tests/ops/test_primitives.py", "tests/func/test_registry_transforms.py", "tests/nn/test_layers_everywhere.py",
        "tests/compile/llvm/test_registry_native.py", "tests/compile/ir/test_passes.py",
    )  # fmt: skip  # a table
    out = child(
        copy,
        "-m",
        "pytest",
        "-n0",
        "-v",
        "-p",
        "no:cacheprovider",
        *files,
        "-k",
        "cubed or Scaled or keeps_the_numbers",
    )
    for expected in ("cubed", "Scaled", "abs(abs(x))"):
        assert re.search(rf"{re.escape(expected)}.* PASSED", out), out


@pytest.mark.slow
def test_the_tests_beside_pytorch_find_what_was_added(copy: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is the oracle")
    files = (
        "tests/doctor/test_checkup.py",
        "tests/optim/test_optimizers_against_torch.py",
        "tests/optim/test_rules.py",
        "tests/optim/test_native_updates.py",
        "tests/optim/test_schedules_against_torch.py",
        "tests/nn/test_layers_against_torch.py",
        "tests/ops/test_edges_registry.py",
        "tests/ops/test_random_graphs.py",
    )
    words = "(one and example) or every_rule or SignSGD or every_optimizer or every_layer or inverse or every_schedule"
    words += " or cubed or use_most_of_the_registry"
    out = child(copy, "-m", "pytest", "-n0", "-v", "-p", "no:cacheprovider", *files, "-k", words)
    whole = ("optimizer_is_tested", "layer_is_compared", "every_rule", "schedule_is_tested", "use_most_of_the_registry")
    optimizer = ("in_place_is_what_the_equations_say[SignSGD", "few_calls_and_no_arrays[SignSGD", "of_numpy[SignSGD")
    schedule = ("goes_on[inverse", "jumps_lead_to_where_steps_do[inverse", "do_not_retrace_a_compiled_step[inverse")
    for expected in ("one example", "test_edges[cubed", *whole, *optimizer, *schedule):
        assert re.search(rf"{re.escape(expected)}.* PASSED", out), out
