"""The tools of a release: equal archives, the bill of materials, the oldest versions, and what workflows name."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tools.release import archives, checks, environments, sbom

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
in_checkout = pytest.mark.skipif(not WORKFLOWS, reason="the source archive leaves the workflows out")


def part(name: str, version: str = "1.0", requires: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {"name": name, "version": version, "requires": list(requires), "license": "MIT", "classifiers": [], **more}


PARTS = [
    part("glassgrad", "1.0.0", ("numpy>=2.0", "ml_dtypes>=0.5", 'matplotlib>=3.9; extra == "pictures"')),
    part("numpy", "2.4.6", license="BSD-3-Clause AND MIT"),
    part("ml_dtypes", "0.6.0", ("numpy>=1.21",), license="", classifiers=["License :: OSI Approved :: Apache License"]),
    part("matplotlib", "3.11", ("numpy",)),
]


@pytest.fixture
def dist(tmp_path: Path) -> tuple[Path, Path]:
    files = (tmp_path / "glassgrad-1.0.0-py3-none-any.whl", tmp_path / "glassgrad-1.0.0.tar.gz")
    for file in files:
        file.write_bytes(file.name.encode())
    return files


def test_the_bill_names_parts_licences_and_what_needs_what(dist: tuple[Path, Path]) -> None:
    path = sbom.write(dist[0].parent, *dist, [*PARTS, part("pip", "24.0")], 1_700_000_000)
    bill = json.loads(path.read_text(encoding="utf-8"))
    assert path.name == "glassgrad-1.0.0.cdx.json"
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/glassgrad@1.0.0"
    shown = {one["purl"]: one["licenses"] for one in bill["components"]}
    assert shown["pkg:pypi/numpy@2.4.6"] == [{"expression": "BSD-3-Clause AND MIT"}]
    assert shown["pkg:pypi/ml-dtypes@0.6.0"] == [{"license": {"name": "Apache License"}}]
    assert not [name for name in shown if "/pip@" in name]
    tree = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    assert tree["pkg:pypi/glassgrad@1.0.0"] == ["pkg:pypi/ml-dtypes@0.6.0", "pkg:pypi/numpy@2.4.6"]
    assert set(tree) == {*shown, "pkg:pypi/glassgrad@1.0.0"}


def test_the_bill_is_the_same_from_the_same_and_another_from_another(dist: tuple[Path, Path]) -> None:
    one = sbom.made(PARTS, dist, 7)
    assert sbom.made(PARTS[::-1], dist, 7) == one
    assert sbom.made([*PARTS[:1], part("numpy", "2.4.7")], dist, 7)["serialNumber"] != one["serialNumber"]
    dist[0].write_bytes(b"other")
    assert sbom.made(PARTS, dist, 7)["serialNumber"] != one["serialNumber"]


def test_archives_that_differ_say_where(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"abcd")
    other.write_bytes(b"abXd")
    assert archives._difference(one, other) == "4 and 4 bytes, the first difference at 2"
    other.write_bytes(b"abcde")
    assert archives._difference(one, other) == "4 and 5 bytes, the first difference at 4"


def test_pythons_that_are_not_there_are_named(tmp_path: Path) -> None:
    said: list[str] = []
    assert environments.use(tmp_path / "no.whl", ROOT, tmp_path, ["9.98", "9.99t"], said.append) is None
    (line,) = said
    assert line.startswith("NOT TRIED under Python 9.98, 9.99t: no such interpreter")


def test_builds_differ_in_everything_that_must_not_matter() -> None:
    one, other = archives.CIRCUMSTANCES
    assert one.folder != other.folder
    assert one.mask != other.mask
    assert one.age != other.age
    assert all(one.environment[name] != other.environment[name] for name in ("TZ", "LC_ALL", "PYTHONHASHSEED"))


def test_a_wheel_with_code_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x/__init__.py", "")
    assert "pure Python" in checks._without_code(wheel)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("x/fast.so", "")
    with pytest.raises(SystemExit, match=r"x/fast\.so"):
        checks._without_code(wheel)


def test_a_python_is_found_by_its_version() -> None:
    own = f"{sys.version_info[0]}.{sys.version_info[1]}" + "t" * (not getattr(sys, "_is_gil_enabled", lambda: True)())
    python = environments.found(own)
    assert python is not None
    assert (
        subprocess.run([python, "-c", environments._ASK], capture_output=True, text=True, check=True).stdout.strip()
        == own
    )
    assert environments.found("3.99") is None


def dependencies() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dependencies", ROOT / "tools" / "dependencies.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_oldest_versions_are_those_of_the_project() -> None:
    tool = dependencies()
    oldest, newest = tool.asked_for("oldest"), tool.asked_for("newest")
    assert [one.replace("==", ">=") for one in oldest] == newest
    assert any(one.startswith("numpy==2") for one in oldest)
    assert any(one.startswith("matplotlib==") for one in oldest)
    with pytest.raises(SystemExit, match="least version"):
        tool.pinned("numpy>=2,<3")


def test_what_an_installation_can_ask_for_is_explained() -> None:
    """Extras are for users; what work on glassgrad needs is a group, which no installation sees."""
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.findall(
        r"^(\w+) = \[", text.partition("[project.optional-dependencies]")[2].partition("\n[")[0], re.MULTILINE
    )
    assert len(extras) <= 7
    assert [name for name in extras if f"(extra `{name}`)" not in page] == []


@in_checkout
def test_workflows_call_what_there_is() -> None:
    targets = set(re.findall(r"^([\w-]+)(?: [\w-]+)*:(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= {"test-newest"}
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        called = re.findall(r"make (?:-C \w+ )?(?:PYTHON=\S+ )?([a-z][\w-]*)", text)
        assert [name for name in called if name not in targets and not name.endswith("-")] == [], path.name
        named = re.findall(r"(?:python|run:) ?((?:tools|tests)/[\w/]+\.py)", text)
        assert [name for name in named if not (ROOT / name).is_file()] == [], path.name


@in_checkout
def test_workflows_may_do_only_what_they_say() -> None:
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert "\npermissions:\n  contents: read\n" in text, path.name
        assert "timeout-minutes" in text, path.name
        assert "secrets." not in text, f"{path.name}: publishing is by trust in the workflow, without a password"


@in_checkout
@pytest.mark.parametrize("name", ["wrong.yml", "slow.yml", "doctor.yml"])
def test_forms_of_issues_ask_for_the_facts(name: str) -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text(encoding="utf-8")
    assert "glassgrad info --bug" in text
    assert text.count("render: python") == 1
