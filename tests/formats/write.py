"""Write files of the library as it is, for later versions to read: `python -m tests.formats.write`.

They lie in a folder named after the version. Run this once for each release (docs/release.md) and never change what
lies there: `test_formats.py` reads every folder with the library of its day. `recipe.py` has the objects of the files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def write(folder: Path) -> None:
    """Write the files of every format, and `expected.json` with the numbers that they lead to."""
    import glassgrad as gg
    from tests.formats import recipe

    gg.save(recipe.model().state_dict(), folder / "weights.safetensors")
    gg.save(recipe.nested(), folder / "nested.safetensors")
    training = recipe.Training(folder / "checkpoint.safetensors")
    training.steps(recipe.BEFORE)
    training.checkpoint.save(**recipe.VALUES)
    expected = {"version": gg.__version__, "losses": training.steps(recipe.AFTER)}
    os.chdir(folder)  # so that no other path gets into the files
    recipe.trainer(Path("trainer")).fit(until=recipe.BEFORE)
    whole = Path(tempfile.mkdtemp()) / "trainer"
    expected["trainer"] = recipe.trainer(whole).fit().loss
    command()
    cached(folder / "cache")
    for path in folder.rglob("*"):
        if path.suffix in {".html", ".png"} or path.name == ".lock":  # for readers; not read again
            path.unlink()
    for path in folder.rglob("run.json"):
        anonymous(path)
    text = json.dumps(expected, indent=1) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


def command() -> None:
    """Train by the command line."""
    from glassgrad.cli import run

    if run(["train", "moons", "--steps", "20", "--engine", "eager", "--run-dir", "moons", "--monitor"]):
        raise SystemExit("the command failed")


def cached(folder: Path) -> None:
    """Write an entry of the cache by its own function: no machine code, which only one kind of processor runs."""
    from glassgrad.compile.kept import files
    from tests.formats import recipe

    os.environ["GLASSGRAD_CACHE_DIR"] = str(folder)
    files.write(recipe.ENTRY, recipe.HEADER, recipe.CODE)


def anonymous(path: Path) -> None:
    """Take the machine out of the record of a run."""
    record = json.loads(path.read_text(encoding="utf-8"))
    for session in record["sessions"]:
        session["machine"] = {"system": "Linux", "architecture": "x86_64", "processor": "some processor", "cores": 2}
        session["variables"] = {}
        session["command"] = [re.sub(r".*[/\\]", "", word) for word in session["command"]]
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write the folder of this version, unless it is there."""
    import glassgrad as gg

    target = HERE / gg.__version__
    if target.exists():
        sys.exit(f"{target} is there; files of a version are written once")
    made = Path(tempfile.mkdtemp()) / "files"
    made.mkdir()
    write(made)
    shutil.copytree(made, target)
    print(f"wrote {len(list(target.rglob('*')))} entries to {target.relative_to(HERE.parents[1])}")


if __name__ == "__main__":
    main()
