"""The requirements of a fresh clone: pins for every requirement, and correct stamps."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {**PROJECT["project"]["optional-dependencies"], **PROJECT["dependency-groups"]}
ASKED_FOR = [*PROJECT["project"]["dependencies"], *(entry for extra in EXTRAS.values() for entry in extra)]


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines), (
        "exact versions and no addresses"
    )
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


@pytest.mark.parametrize("entry", ASKED_FOR)
def test_everything_asked_for_is_pinned_within_its_range(entry: str) -> None:
    requirement = Requirement(entry)
    assert pins()[canonicalize_name(requirement.name)] in requirement.specifier


def test_what_is_pinned_runs_on_the_oldest_python() -> None:
    """Debian 12 has 3.11.2: a pin that asks for 3.11.5 makes a fresh `make` fail there."""
    oldest = re.search(r"\d+\.\d+", PROJECT["project"]["requires-python"])
    assert oldest is not None
    there = {canonicalize_name(one.metadata["Name"]): one for one in importlib.metadata.distributions()}
    asks = {
        name: there[name].metadata["Requires-Python"]
        for name, version in pins().items()
        if name in there and there[name].version == version
    }
    assert "numpy" in asks
    assert {name for name, python in asks.items() if python and f"{oldest[0]}.0" not in SpecifierSet(python)} == set()


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/bootstrap.py, looking at an empty project folder."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs = (tmp_path / "pyproject.toml", tmp_path / "constraints.txt")
    for file in inputs:
        file.write_text("")
        os.utime(file, (1_000, 1_000))
    (tmp_path / ".venv").mkdir()
    for name, value in {"ROOT": tmp_path, "VENV": tmp_path / ".venv", "INPUTS": inputs}.items():
        monkeypatch.setattr(module, name, value)
    return module


def test_a_stamp_counts_when_it_is_younger_and_from_this_folder(bootstrap: ModuleType, tmp_path: Path) -> None:
    assert not bootstrap.is_current("dev")
    stamp = bootstrap.stamp_of("dev")
    stamp.write_text(f"{tmp_path}\n")
    assert bootstrap.is_current("dev")
    os.utime(tmp_path / "constraints.txt", (2_000_000_000_000, 2_000_000_000_000))
    assert not bootstrap.is_current("dev")
    os.utime(tmp_path / "constraints.txt", (1_000, 1_000))
    stamp.write_text("/somewhere/else\n")
    assert not bootstrap.is_current("dev")


@pytest.mark.parametrize(
    ("wheel", "expected"),
    [
        ("", "cannot be had"),
        ("torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", "gigabytes of CUDA"),
    ],
)
def test_pytorch_is_left_out_rather_than_failing(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch, wheel: str, expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("GLASSGRAD_TORCH", raising=False)
    monkeypatch.setattr(bootstrap, "works", lambda *_: False)
    monkeypatch.setattr(bootstrap, "torch_wheel", lambda _: wheel)
    monkeypatch.setattr(bootstrap, "pip", lambda *_, **__: pytest.fail("nothing is to be installed"))
    assert expected in bootstrap.install_torch()


def test_a_pytorch_that_does_not_run_is_removed_again(bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "works", lambda *_: False)
    monkeypatch.setattr(bootstrap, "torch_wheel", lambda _: "torch-2.13.0+cpu-cp311.whl")
    monkeypatch.setattr(bootstrap, "pip", lambda *_, **__: True)
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda command, **_: commands.append(command))
    assert "does not work here" in bootstrap.install_torch()
    assert commands[0][-3:] == ["--quiet", "--yes", "torch"]


def test_make_says_what_it_needs_when_there_is_no_python(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("")
    command = ["make", "-C", str(tmp_path), "PYTHON=", "demo"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert process.returncode != 0
    assert "needs Python 3.11 or newer" in process.stdout
    assert not (tmp_path / ".venv").exists()


def test_only_glassgrad_itself_is_built_without_isolation(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package that has no wheel needs what its own build asks for."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(bootstrap, "pip", lambda *arguments: calls.append(arguments))
    for extras in ((), *((extra,) for extra in EXTRAS), *bootstrap.EXTRAS.values()):
        calls.clear()
        bootstrap.install_project(extras)
        assert calls[0] == (*PROJECT["project"]["dependencies"], *(one for extra in extras for one in EXTRAS[extra]))
        assert [call for call in calls if "--no-build-isolation" in call] == [calls[-1]]
        assert "--no-deps" in calls[-1]
