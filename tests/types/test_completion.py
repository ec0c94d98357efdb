"""The names that an editor offers: those that jedi and pyright find statically, and `dir` of a live object."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path

import jedi
import pytest

import glassgrad as gg
from glassgrad.engine.reports.absent import INSTEAD
from tests.types.language_server import Server

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["", ".nn", ".nn.functional", ".optim", ".optim.lr_scheduler", ".func", ".utils.data", ".train", ".data"]


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what jedi has parsed apart: several workers would write the same files, and read halves of them."""
    jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))


def completions(*lines: str) -> set[str]:
    """Return the public names that jedi offers at the end of a program."""
    project = jedi.Project(str(ROOT / "tests"), added_sys_path=[str(ROOT / "src")], load_unsafe_extensions=False)
    script = jedi.Script("\n".join(lines), path=str(ROOT / "tests" / "unsaved.py"), project=project)
    return {name.name for name in script.complete(len(lines), len(lines[-1])) if not name.name.startswith("_")}


def live(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize("expression", ["gg.tensor([1.0])", "(gg.ones(2) + 1)", "gg.exp(gg.ones(2)).sum(dim=0)"])
def test_a_tensor_has_the_same_names_in_an_editor(expression: str) -> None:
    found = completions("import glassgrad as gg", f"x = {expression}", "x.")
    assert found == live(gg.tensor([1.0]))
    assert len(found) > 500


def test_the_class_has_beside_them_only_names_that_say_what_to_use_instead() -> None:
    """`dir(gg.Tensor)` is Python's own of a class: it lists the names that raise. Nothing completes them."""
    absent = live(gg.Tensor) - live(gg.tensor([1.0]))
    assert absent == set(INSTEAD)
    for name in sorted(absent)[::40]:
        with pytest.raises(AttributeError, match=name):
            getattr(gg.tensor([1.0]), name)


@pytest.mark.slow
def test_pyright_offers_the_names_that_jedi_offers() -> None:
    server = shutil.which("pyright-langserver")
    if server is None:
        pytest.skip("pyright is not installed (npm install --global pyright)")
    with Server([server, "--stdio"], ROOT, ROOT / "src") as pyright:
        start = "import glassgrad as gg\n"
        assert pyright.completions("tests/one.py", f"{start}x = gg.tensor([1.0])\nx.") == live(gg.tensor([1.0]))
        assert pyright.completions("tests/two.py", f"{start}(gg.ones(2) + 1).exp().sum(dim=0).") == live(gg.ones(2))
        assert live(gg) <= pyright.completions("tests/three.py", f"{start}gg.")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_the_same_names_in_an_editor(package: str) -> None:
    module = importlib.import_module(f"glassgrad{package}")
    found = completions("import glassgrad as gg", f"gg{package}.")
    assert live(module) <= found
    # Beside them jedi offers every file of a folder, and what a file imports for itself.
    ours = {name for name in found - live(module) if callable(getattr(module, name, None))}
    assert {name for name in ours if getattr(module, name).__module__ == module.__name__} == set()


@pytest.mark.slow
def test_a_parameter_of_a_layer_is_a_tensor_in_an_editor() -> None:
    found = completions("import glassgrad as gg", "gg.nn.Linear(2, 3).weight.")
    assert found == live(gg.nn.Parameter(gg.ones(2)))


def test_a_live_object_is_completed() -> None:
    layer = gg.nn.Linear(2, 3)
    names = {"gg": gg, "y": layer(gg.ones(2)), "layer": layer}
    for text, known in [("gg.no_gr", "no_grad"), ("y.backw", "backward"), ("layer.weig", "weight")]:
        offered = {one.name for one in jedi.Interpreter(text, [names]).complete()}
        assert known in offered
