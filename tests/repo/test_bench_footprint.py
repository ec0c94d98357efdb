"""The program that measures sizes and imports counts what is there."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from benchmarks import footprint


def test_what_a_package_needs_is_found_without_extras() -> None:
    names = footprint.needed(["glassgrad"])
    assert {"glassgrad", "numpy", "scipy", "llvmlite", "typer", "rich"} <= names
    assert not {"onnx", "mpi4py", "pytest"} & names
    assert footprint.needed(["NumPy"]) == {"numpy"}


def test_sizes_are_those_of_the_files() -> None:
    folder = Path(np.__file__).parent
    least = sum(path.stat().st_size for path in folder.rglob("*.py"))
    most = sum(path.stat().st_size for path in folder.parent.rglob("*") if path.is_file())
    found = footprint.size(["numpy"])
    assert least < found <= most
    ours = footprint.size(["glassgrad"])
    assert ours > found + sum(path.stat().st_size for path in footprint.files("glassgrad"))
    assert any(path.name == "record.py" for path in footprint.files("glassgrad"))


def test_a_library_that_is_not_installed_is_named() -> None:
    row = footprint.row(footprint.Library("Nothing", "no-such-library", (), "pass"), rounds=1)
    assert row == ["Nothing", "not installed", "–", "–", "–"]
    with pytest.raises(metadata.PackageNotFoundError):
        footprint.size(["no-such-library"])


def test_an_import_takes_time_and_memory() -> None:
    seconds, megabytes = footprint.started("import numpy; numpy.ones(4_000_000)", rounds=1)
    assert seconds > 0
    assert megabytes > 32
    title, version, disk, first, memory = footprint.row(footprint.LIBRARIES[0], rounds=1)
    assert (title, version) == ("NumPy", metadata.version("numpy"))
    assert disk.endswith(" MB")
    assert first.endswith(" s")
    assert float(memory.split()[0]) > 10
