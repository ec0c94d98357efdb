"""Gather the sources of the site in one folder: the pages of docs/, pages that are made from the code, and the
navigation. A file is written only if it changed, so that a second build reads only what is new.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sitegen import layertable, messages, notebooks, optable, playgrounds, reference

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
PICTURES = {".svg", ".png", ".jpg", ".gif"}

# Pages that lie elsewhere in the repository.
ELSEWHERE = {
    ROOT / "benchmarks" / "RESULTS.md": "measured",
    ROOT / "CHANGELOG.md": "changelog",
    ROOT / "CONTRIBUTING.md": "contributing",
}
# Pages that are made, and their makers.
MADE = {
    "ops": optable.page,
    "layers": layertable.page,
    "messages": messages.page,
}
# The order in the column on the left: (heading, pages). Every other page of docs/ comes under `MORE`, by its name.
MORE = "More guides"
NAVIGATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "First steps",
        (
            "first_hour",
            "install",
            "quickstart",
            "from_pytorch",
            "which_function",
            "gallery",
            "when_to_use_something_else",
        ),
    ),
    ("Training", ("data", "training", "distributed", "precision", "models", "onnx", "c_export", "ecosystem", "report")),
    ("When it does not train", ("doctor", "findings", "watching_gradients", "drawing")),
    (
        "Derivatives",
        ("scalar", "by_hand", "autograd", "transforms", "verification", "checking_a_derivation", "bugs_in_tutorials"),
    ),
    ("Lessons", ("lessons/index", "playground")),
    (MORE, ("types",)),
    ("Reference", ("api/index", "ops", "layers", "messages", "environment", "glossary")),
    (
        "Inside",
        ("compiler", "architecture", "adr/README", "measured", "stability", "contributing", "release", "changelog"),
    ),
)
# Folders whose index page leads to the others in it; a decision is listed by its number, a lesson too.
FOLDERS = {"lessons/index": "lessons", "adr/README": "adr"}
UNLISTED = {"index", "adr/template"}


def assemble(target: Path, only: tuple[str, ...] = ()) -> list[str]:
    """Write the sources of the site to a folder; return the names of the pages.

    Args:
        target: the folder; what is not of this site is removed from it.
        only: the pages wanted (without ending, from the root of the site), by default all.
    """
    texts = dict(sources(only))
    texts["index"] = texts.get("index", "# Index\n") + toctrees(navigation(set(texts)))
    for name, folder in FOLDERS.items():
        if name in texts:
            texts[name] += _toctree("", [one for one in sorted(texts) if one.startswith(f"{folder}/") and one != name])
    files: dict[Path, Path] = {}
    for place, text in notebooks.files().items():
        _write(target / place, text)
    for name, text in texts.items():
        _write(target / f"{name}.md", prepared(text, origin(name), name, set(texts), files))
    for picture in DOCS.rglob("*"):
        if picture.suffix in PICTURES:
            files[Path(picture.relative_to(DOCS))] = picture
    for place, file in files.items():
        _copy(file, target / place)
    kept = {target / f"{name}.md" for name in texts} | {target / place for place in [*files, *notebooks.files()]}
    for path in list(target.rglob("*")):
        if path.is_file() and path not in kept:
            path.unlink()
    return sorted(texts)


def sources(only: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield (name, Markdown) of the pages wanted, by default of every page."""
    guides = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
    files = {name: path for name, path in guides.items() if name not in UNLISTED or name == "index"}
    files |= {name: path for path, name in ELSEWHERE.items()}
    makers: dict[str, Callable[[], str]] = {name: partial(path.read_text, "utf-8") for name, path in files.items()}
    makers |= MADE
    if not only or any(name.startswith("api/") for name in only):
        makers["api/index"] = reference.index
        makers |= {f"api/{page.name}": partial(reference.text_of, page) for page in reference.pages()}
    for name, text in makers.items():
        if not only or name in only:
            yield name, playgrounds.embedded(name, notebooks.with_link(name, text()))


def origin(name: str) -> Path:
    """Return the file a page comes from, which its links are relative to."""
    return next((path for path, page in ELSEWHERE.items() if page == name), DOCS / f"{name}.md")


def navigation(names: set[str]) -> list[tuple[str, list[str]]]:
    """Return the sections of the navigation with the pages that are there."""
    placed = {name for _, pages in NAVIGATION for name in pages} | UNLISTED
    inside = tuple(f"{folder}/" for folder in (*FOLDERS.values(), "api"))
    others = sorted(name for name in names if name not in placed and not name.startswith(inside))
    sections = [(head, [*pages, *(others if head == MORE else ())]) for head, pages in NAVIGATION]
    return [(head, [page for page in pages if page in names]) for head, pages in sections]


def toctrees(sections: list[tuple[str, list[str]]]) -> str:
    """Return the navigation as directives."""
    return "".join(_toctree(head, pages) for head, pages in sections if pages)


def _toctree(head: str, pages: list[str]) -> str:
    caption = f":caption: {head}\n" if head else ""
    return "\n```{toctree}\n:hidden:\n" + caption + "\n" + "".join(f"/{page}\n" for page in pages) + "```\n"


# --- one page ---------------------------------------------------------------------------------------

_FENCE = re.compile(r"^```(?P<info>\S[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<![\[`\w}])`((?:gg\.|[a-zA-Z]\w*\.)+\w+)(?:\(\))?`(?![`\]])")
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^()\s#]+)(#[^()\s]*)?(?=\))")


def prepared(text: str, path: Path, name: str, names: set[str], files: dict[Path, Path]) -> str:
    """Return a page with its listings marked and its links led to pages of the site, or to files copied to it.

    Args:
        text: the page.
        path: the file it comes from.
        name: the name of the page.
        names: the names of all pages.
        files: the copies to be made, place in the site -> file; what the page links to is added.
    """

    def led(match: re.Match[str]) -> str:
        place, anchor = match[1], match[2] or ""
        up = "../" * name.count("/")
        made = place.removesuffix(".html")
        if made in names and place.endswith(".html"):
            return f"{up}{made}.md{anchor}"
        file = (path.parent / place).resolve()
        if file in ELSEWHERE and ELSEWHERE[file] in names:
            return f"{up}{ELSEWHERE[file]}.md{anchor}"
        if file.is_file() and file.is_relative_to(DOCS):
            return os.path.relpath(file, (DOCS / name).parent).replace(os.sep, "/") + anchor
        if file.is_dir() and (file / "README.md").is_file():
            file = file / "README.md"
        if file.is_file() and file.is_relative_to(ROOT):
            copy = Path("files") / file.relative_to(ROOT)
            copy = copy.with_suffix(".txt") if copy.suffix == ".md" else copy
            files[copy] = file
            return f"{up}{copy.as_posix()}"
        return match[0]

    parts: list[str] = []
    end = 0
    for fence in [*_FENCE.finditer(text), None]:
        words = _LINK.sub(led, text[end : fence.start() if fence else None])
        parts.append(_CODE.sub(_named, words) if "api/index" in names and not name.startswith("api/") else words)
        if fence:
            parts.append(_marked(fence))
            end = fence.end()
    return "".join(parts)


def _named(match: re.Match[str]) -> str:
    """Return code that names something public as a link to its entry."""
    target = reference.known().get(re.sub(r"^F\.", "nn.functional.", match[1]))
    return f"{{py:obj}}`{match[0].strip('`')} <{target}>`" if target else match[0]


def _marked(match: re.Match[str]) -> str:
    """Return a fence as the engine reads it: what is printed, and the file that code stands in, become options."""
    language, *rest = match["info"].split()
    body = match["body"]
    if language.startswith("{"):
        return match[0]
    if ">>> " in body:
        return f"```pycon\n{body.rstrip()}\n```"
    if "output" in rest:
        return f"```{{code-block}} {language}\n:class: output\n\n{body}```"
    if rest and language == "python":
        return f"```{{code-block}} python\n:caption: {rest[0]}\n\n{body}```"
    return match[0]


def _write(path: Path, text: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _copy(file: Path, path: Path) -> None:
    if not path.is_file() or path.stat().st_mtime < file.stat().st_mtime or path.stat().st_size != file.stat().st_size:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, path)


__all__ = ["NAVIGATION", "assemble", "navigation", "prepared", "sources"]
