"""Packages whose names live in families: their lists, the loaded modules, and their stubs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from glassgrad.base.families import FOUND, Families
from tools.stubs import PACKAGE, SERVED, WRITERS, stub

ALL = (*SERVED, "nn.functional")  # the last is loaded whole


def test_every_served_package_has_a_stub() -> None:
    for name in ALL:
        importlib.import_module(f"glassgrad.{name}")
    assert sorted(FOUND) == sorted(f"glassgrad.{name}" for name in ALL)


@pytest.mark.parametrize("file", WRITERS)
def test_the_stub_says_the_same(file: str) -> None:
    assert (PACKAGE / file).read_text(encoding="utf-8") == stub(file), "run python tools/stubs.py"


@pytest.mark.parametrize("name", ALL)
def test_every_listed_name_is_found_and_none_twice(name: str) -> None:
    package = importlib.import_module(f"glassgrad.{name}")
    families = FOUND[package.__name__]
    listed = [one for _, names in families.listed() for one in names]
    seen: dict[str, object] = {}
    for home, names in families.listed():
        module = importlib.import_module(home)
        assert names == module.__all__, f"{home}: `__all__` is a list that is written out"
        for one in names:
            assert getattr(package, one) is getattr(module, one)
            assert seen.setdefault(one, getattr(module, one)) is getattr(module, one)
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(package.__all__) <= set(dir(package))


LOADING = """
import importlib, sys
for name, home, one in {packages!r}:
    for loaded in [key for key in sys.modules if key.partition(".")[0] == "glassgrad"]:
        del sys.modules[loaded]  # begin anew: an interpreter for each package would cost most of the time
    package = importlib.import_module(name)
    assert home not in sys.modules, name
    package.__all__
    assert home not in sys.modules, name
    getattr(package, one)
    assert home in sys.modules, name
print(*[package for package, _, _ in {packages!r}])
"""


def test_a_family_is_loaded_when_a_name_of_it_is_asked_for() -> None:
    packages = []
    for name in SERVED:
        package = importlib.import_module(f"glassgrad.{name}")
        home, names = next(FOUND[package.__name__].listed())
        packages.append((package.__name__, home, names[0]))
    program = LOADING.format(packages=packages)
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.stdout.split() == [package for package, _, _ in packages], process.stderr


@pytest.mark.parametrize("name", ALL)
def test_a_name_that_is_missing_is_told_with_the_nearest(name: str) -> None:
    package = importlib.import_module(f"glassgrad.{name}")
    known = next(one for one in package.__all__ if len(one) > 5)
    with pytest.raises(AttributeError, match=rf"{package.__name__} has no '{known}x'.*\nNearest: .*{known}"):
        getattr(package, f"{known}x")
    with pytest.raises(AttributeError):
        package.__no_such_dunder__  # noqa: B018 - asks for it


def test_a_new_file_is_found_and_a_private_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "one.py").write_text('class A: pass\n\n\n__all__ = [\n    "A",\n    "b_2",\n]\n')
    (tmp_path / "rows.py").write_text('__all__ = ["D"]\n__all__ += ["E"]\n')
    (tmp_path / "kept" / "two.py").write_text('__all__ = ["C"]\n')
    (tmp_path / "helper.py").write_text("class Hidden: pass\n")
    (tmp_path / "computed.py").write_text("__all__ = [*NAMES]\n")
    (tmp_path / "alone_x.py").write_text('__all__ = ["Alone"]\n')
    families = Families("pack", str(tmp_path), modules=("one",), apart=("alone_",), inner=("kept",))
    homes = {"A": "pack.one", "b_2": "pack.one", "D": "pack.rows", "E": "pack.rows", "C": "pack.kept.two"}
    assert families.homes == homes
    assert families.public == ["A", "b_2", "D", "E", "C", "one"]
