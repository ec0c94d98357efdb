"""The built page: it comes from its sources, needs nothing else, and allows nothing else to run in it."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import glassgrad
from glassgrad.base.drawing import step_page
from glassgrad.base.drawing.frame import escaped
from glassgrad.report.page import FOLDER, built, html_page

WEB = Path(__file__).parents[2] / "web"
PACKAGE = Path(glassgrad.__file__).parent
PLAYGROUND = PACKAGE / "lessons" / "playground" / "page"
BUILT = [
    *(FOLDER / name for name in ("page.js", "page.css", "LICENSES.txt")),
    *(step_page.FOLDER / name for name in ("step.js", "step.css", "LICENSES.txt")),
    *(
        PLAYGROUND / name
        for name in ("playground.html", "playground.js", "formulas.js", "playground.css", "LICENSES.txt")
    ),
]


@pytest.mark.parametrize(
    "program",
    [
        built("page.js"),
        step_page.built("step.js"),
        (PLAYGROUND / "playground.js").read_text(),
        (PLAYGROUND / "formulas.js").read_text(),
    ],
    ids=["runs", "step", "playground", "formulas"],
)
def test_the_built_program_has_the_hash_of_its_sources(program: str) -> None:
    names = [path.relative_to(WEB).as_posix() for path in (WEB / "src").rglob("*") if path.is_file()]
    names += ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"]
    found = hashlib.sha256()
    for name in sorted(names):
        found.update(f"{name}\0".encode() + (WEB / name).read_bytes() + b"\0")
    said = re.match(r"/\* built from web/, sha256 ([0-9a-f]{64})", program)
    assert said, "the program does not say what it was built from"
    assert said[1] == found.hexdigest(), "web/ has changed: npm ci && npm run build"


@pytest.mark.slow
def test_a_build_gives_the_same_files(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (WEB / "node_modules" / "esbuild").is_dir():
        pytest.skip("node or web/node_modules is not there: npm ci in web/")
    there = {path: tmp_path / "src" / "glassgrad" / path.relative_to(PACKAGE) for path in BUILT}
    for path in there.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(WEB, tmp_path / "web", symlinks=True)
    for command in (["npm", "run", "-s", "check"], ["npm", "run", "-s", "build"]):
        done = subprocess.run(command, cwd=tmp_path / "web", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for path, made in there.items():
        assert made.read_bytes() == path.read_bytes(), path.name


def test_versions_are_pinned_and_the_lock_file_holds_no_addresses() -> None:
    package = json.loads((WEB / "package.json").read_text())
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    lock = (WEB / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "integrity" in lock
    licenses = "".join(path.read_text() for path in BUILT if path.name == "LICENSES.txt")
    for name, version in package["dependencies"].items():
        assert f"{name} {version}" in licenses


def test_the_page_is_small_and_allows_nothing_but_itself() -> None:
    page = html_page("a <title>", {"runs": []})
    assert len(page) < 500_000
    assert "<title>a &lt;title&gt;</title>" in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    assert "connect-src" not in policy[1]
    assert "connect-src 'self'" in html_page("live", {}, live=True)
    assert not re.search(r"<(script|link|img|iframe)[^>]*\s(src|href)=", page)
    assert "</script" not in built("page.js").lower()


def test_data_cannot_end_their_element() -> None:
    data = {"name": "</script><!-- <script>&\u2028", "number": 1.5}
    text = escaped(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data
