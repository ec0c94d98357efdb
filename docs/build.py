"""Build the documentation: every Markdown page under docs/, and the pages that are made from the code.

python docs/build.py [--out FOLDER]     (default: build/docs; open index.html there)
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "src")]

from sitegen import layertable, messages, optable  # noqa: E402 - found through the path above
from sitegen.html import frame, render, style  # noqa: E402 - as above

# The guide in reading order; what else lies in docs/ follows by title.
GUIDE = (
    "index.md", "install.md", "quickstart.md", "from_pytorch.md", "training.md", "data.md", "models.md", "onnx.md",
    "report.md", "doctor.md", "watching_gradients.md", "drawing.md", "scalar.md", "by_hand.md", "autograd.md",
    "transforms.md", "verification.md", "checking_a_derivation.md", "bugs_in_tutorials.md", "architecture.md",
    "compiler.md", "glossary.md",
)  # fmt: skip  # a table
FOLDERS = {"lessons": "Lessons", "adr": "Decisions"}
FIGURES = {".svg", ".png", ".jpg", ".gif"}

REFERENCE = [
    ("All ops", "ops.html"),
    ("All layers", "layers.html"),
    ("Messages", "messages.html"),
    ("Measured", "measured.html"),
]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"

Navigation = list[tuple[str, list[tuple[str, str]]]]


def build(out: Path) -> list[Path]:
    """Write the site to a folder, and return the pages."""
    pages = {path: render(path.read_text(encoding="utf-8")) for path in sources()}
    navigation = navigation_of({path: title for path, (title, _) in pages.items()})
    out.mkdir(parents=True, exist_ok=True)
    (out / "style.css").write_text(style(), encoding="utf-8")
    written = []
    for path, (title, body) in pages.items():
        written.append(write(out, target(path), title, with_files(out, path, body), navigation))
    written.append(write(out, "ops.html", "All ops", optable.page(), navigation))
    written.append(write(out, "layers.html", "All layers", layertable.page(), navigation))
    written.append(write(out, "messages.html", "Messages", messages.page(), navigation))
    written.append(write(out, "measured.html", *render(RESULTS.read_text(encoding="utf-8")), navigation))
    for figure in DOCS.rglob("*"):
        if figure.suffix in FIGURES:
            place = out / figure.relative_to(DOCS)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(figure, place)
    return written


def with_files(out: Path, path: Path, body: str) -> str:
    """Copy what a page links to outside of docs/, such as the program behind a lesson, and lead the links there."""

    def moved(match: re.Match[str]) -> str:
        file = (path.parent / match.group(1)).resolve()
        if file == RESULTS.with_suffix(".html"):  # a page of its own
            return f'href="{"../" * target(path).count("/")}measured.html"'
        if not file.is_file() or file.is_relative_to(DOCS) or not file.is_relative_to(ROOT):
            return match.group(0)
        place = out / "files" / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        up = "../" * target(path).count("/")
        return f'href="{up}files/{file.relative_to(ROOT).as_posix()}"'

    return re.sub(r'href="(\.\./[^"#:]*)"', moved, body)


def sources() -> list[Path]:
    """Return the Markdown files, the guide first."""
    guide = [DOCS / name for name in GUIDE]
    rest = sorted(path for path in DOCS.glob("*.md") if path not in guide)
    inside = [path for folder in FOLDERS for path in sorted((DOCS / folder).glob("*.md"))]
    return [path for path in [*guide, *rest, *inside] if path.exists()]


def target(path: Path) -> str:
    """Return where a page goes, from the root of the site."""
    relative = path.relative_to(DOCS).with_suffix(".html")
    return relative.with_name("index.html").as_posix() if relative.stem == "README" else relative.as_posix()


def navigation_of(titles: dict[Path, str]) -> Navigation:
    """Group the pages: the guide, what is generated, and one section per folder."""
    guide = [(titles[path], target(path)) for path in titles if path.parent == DOCS and path.name != "index.md"]
    sections: Navigation = [("Guide", guide), ("Reference", REFERENCE)]
    for folder, heading in FOLDERS.items():
        own = [
            path for path in titles if path.parent.name == folder and path.stem not in {"index", "README", "template"}
        ]
        sections.append((heading, [(short(titles[path]), target(path)) for path in own]))
    return [(heading, pages) for heading, pages in sections if pages]


def short(title: str) -> str:
    """Return a title without what follows a comma or colon, for the narrow column."""
    return title.partition(":")[0].partition(",")[0]


def write(out: Path, name: str, title: str, body: str, navigation: Navigation) -> Path:
    """Write one page into its frame."""
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(frame(title, body, navigation, name), encoding="utf-8")
    return path


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    out = parser.parse_args().out
    written = build(out)
    print(f"{len(written)} pages in {out}; begin with {out / 'index.html'}")


if __name__ == "__main__":
    main()
