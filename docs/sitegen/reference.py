"""The API reference as Markdown pages: which name stands on which page, and what is said of it."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

import glassgrad as gg
from sitegen import docstrings, public_names, spelling
from sitegen.optable import FAMILIES, family_of
from sitegen.public_names import Entry

# Headings of the names of `glassgrad` that are no ops, by the module they are written in (the longest that fits).
HOMES = {
    "glassgrad.engine.tensors.creation": "Making tensors",
    "glassgrad.engine.tensors.window_functions": "Making tensors",
    "glassgrad.engine.protocols": "Making tensors",
    "glassgrad.engine.random": "Random numbers",
    "glassgrad.engine.mode": "Recording gradients",
    "glassgrad.engine.tensor": "Tensor",
    "glassgrad.serialization": "Saving and loading",
    "glassgrad.compile": "Compiling, explaining, watching",
    "glassgrad.explanation": "Compiling, explaining, watching",
    "glassgrad.doctor": "Compiling, explaining, watching",
    "glassgrad.report": "Compiling, explaining, watching",
    "glassgrad.func": "Compiling, explaining, watching",
    "glassgrad.sparse": "Making tensors",
    "glassgrad.compat.torch_names": "Making tensors",
}
CONSTANTS = "Dtypes and constants"
IN_PLACE = "In place"
SCRIPTS = "For scripts written for PyTorch"
# Pages of `glassgrad.nn` by the files of its families; a file that is missing here gets the last one.
LAYERS = {
    "Modules and containers": ("module", "containers", "parameter", "overview", "lazy", "parallel"),
    "Linear layers, embeddings, shapes": ("linear", "embedding", "shape", "distance"),
    "Convolutions": ("conv",), "Pooling": ("pooling",), "Padding and resizing": ("padding", "upsampling"),
    "Activations": ("activation",), "Normalisation and dropout": ("norm", "dropout"),
    "Recurrent layers": ("recurrent", "cells"), "Attention and transformers": ("attention", "transformer", "rotary"),
    "Losses": ("losses",), "More layers": (),
}  # fmt: skip  # a table
FIRST = ("Tensor", "Making tensors", "Random numbers", "Recording gradients", CONSTANTS)
LAST = (IN_PLACE, "Saving and loading", "Compiling, explaining, watching", SCRIPTS)


@dataclass
class Page:
    """A page of the reference: a module, or a group of its names."""

    name: str  # of the file, without its ending
    title: str
    module: str
    about: str
    entries: list[Entry] = field(default_factory=list)


@cache
def pages() -> tuple[Page, ...]:
    """Return all pages in their order, none empty."""
    found: list[Page] = []
    for module in public_names.modules():
        if module == "glassgrad":
            found += _grouped(module, [*FIRST, *FAMILIES.values(), *LAST], _op_group)
        elif module == "glassgrad.nn":
            found += _grouped(module, list(LAYERS), _layer_group)
        else:
            found.append(Page(module, module, module, _about(module), list(public_names.entries(module))))
    return tuple(page for page in found if page.entries)


def _about(module: str) -> str:
    return inspect.getdoc(import_module(module)) or ""


def _grouped(module: str, titles: list[str], group: Any) -> list[Page]:
    short = module.rpartition(".")[2]
    of = {title: Page(f"{module}.{_slug(title)}", f"{short}: {title}", module, "") for title in titles}
    for entry in public_names.entries(module):
        of[group(entry)].entries.append(entry)
    return list(of.values())


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _op_group(entry: Entry) -> str:
    home = str(getattr(inspect.unwrap(entry.value), "__module__", ""))
    known = [name for name in HOMES if home == name or home.startswith(f"{name}.")]
    if entry.name.endswith("_") and inspect.isfunction(entry.value):
        return IN_PLACE
    if (family := family_of(entry.name)) is not None:
        return FAMILIES[family]
    if not callable(entry.value) and not hasattr(entry.value, "__getattr__"):
        return CONSTANTS
    return HOMES[max(known, key=len)] if known else SCRIPTS


def _layer_group(entry: Entry) -> str:
    file = str(entry.value.__module__).rpartition(".")[2]
    return next((title for title, files in LAYERS.items() if file in files), [*LAYERS][-1])


# --- links ------------------------------------------------------------------------------------------


@cache
def known() -> dict[str, str]:
    """Return for every way to write a public name in a docstring the full name that has an entry."""
    found: dict[str, str] = {}
    for page in pages():
        for entry in page.entries:
            for name in (entry.name, *entry.aliases):
                full = f"{entry.module}.{name}"
                _spell(found, full)
            if inspect.isclass(entry.value):
                for name, _, _ in members(entry.value):
                    _spell(found, f"{entry.full}.{name}")
    return found


def _spell(found: dict[str, str], full: str) -> None:
    for word in (full, full.removeprefix("glassgrad."), full.replace("glassgrad", "gg", 1)):
        found.setdefault(word, full)


def link_from(module: str, own: str = "") -> docstrings.Link:
    """Return what finds the entry that a piece of code in a docstring names; nothing links to itself."""

    def link(word: str) -> str | None:
        word = word.removesuffix("()")
        if not re.fullmatch(r"[A-Za-z_][\w.]*", word):
            return None
        target = known().get(f"{module}.{word}") or known().get(word)
        return target if target != own else None

    return link


# --- the page that leads to the others --------------------------------------------------------------

INDEX = """# API reference

Every public name, by the module that it is imported from: {names:,} names on {pages} pages, made from the code. Each
has its signature, what it says of itself, its example, and a link to its source. The examples are run by the tests.

In signatures, `TensorLike` is a tensor, an array or a number; `Ints` an integer or several; `DTypeLike` whatever NumPy
takes for a dtype; `TensorOrArray` says that an array comes back for an array. Arguments of ops may have NumPy's names
as well. `gg` in examples is `import glassgrad as gg`, `nn` is `gg.nn`, and `F` is `gg.nn.functional`.
"""


def index() -> str:
    """Return the page that lists the others."""
    names = sum(1 + len(entry.aliases) for page in pages() for entry in page.entries)
    parts = [INDEX.format(names=names, pages=len(pages()))]
    for heading, wanted in (("glassgrad (gg)", "glassgrad"), ("glassgrad.nn", "glassgrad.nn"), ("Modules", "")):
        own = [page for page in pages() if page.module == wanted or (not wanted and page.module == page.title)]
        rows = [f"| [{page.title}]({page.name}.md) | {_first(page)} |" for page in own]
        parts.append("\n".join([f"## {heading}\n", "| page | what is on it |", "|---|---|", *rows]))
    listed = "\n".join(f"/api/{page.name}" for page in pages())
    parts.append(f"```{{toctree}}\n:hidden:\n\n{listed}\n```")
    return "\n\n".join(parts) + "\n"


def _first(page: Page) -> str:
    if page.about:
        return _cell(docstrings.summary(page.about, link_from(page.module)))
    shown = ", ".join(f"`{entry.name}`" for entry in page.entries[:7])
    return f"{shown}, ..." if len(page.entries) > 7 else shown


# --- pages as text ----------------------------------------------------------------------------------


def text_of(page: Page) -> str:
    """Return a page as Markdown."""
    link = link_from(page.module)
    parts = [f"# {page.title}", f"```{{py:currentmodule}} {page.module}\n```"]
    if page.about:
        parts.append(docstrings.to_markdown(page.about, link))
    if len(page.entries) > 3:
        rows = [f"| {{py:obj}}`{entry.name} <{entry.full}>` | {_cell(said(entry, link))} |" for entry in page.entries]
        parts.append("\n".join(["| name | what it is |", "|---|---|", *rows]))
    parts += [entry_text(entry) for entry in page.entries]
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    """Return a text for a cell, in which a bar would begin the next one."""
    return re.sub(r"(?<!\\)\|", r"\|", text.replace("\n", " ")) or "-"


def said(entry: Entry, link: docstrings.Link) -> str:
    """Return the first line about an entry."""
    if entry.value is gg.Tensor:
        return docstrings.summary(_doc(entry.value), link)
    text = _doc(entry.value)
    return docstrings.summary(text, link) if text else docstrings.inline(f"`{_shown(entry.value)}`")


def _doc(value: Any) -> str:
    """Return what an object says of itself; a number says nothing of its own."""
    ours = callable(value) or str(type(value).__module__).startswith("glassgrad")
    text = (inspect.getdoc(value) or "") if ours else ""
    if inspect.isclass(value) and text.startswith(f"{value.__name__}(") and "\n" not in text:
        return ""  # a dataclass that only repeats its signature
    return text


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 10:
        return f"array of {value.size} numbers, {value.dtype}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value)).strip("<>")


def entry_text(entry: Entry) -> str:
    """Return the directive that describes one name."""
    body = docstrings.to_markdown(_doc(entry.value), link_from(entry.module, entry.full))
    names = [entry.name, *entry.aliases]
    if inspect.isclass(entry.value):
        heads = [f"{name}{spelling.of_class(entry.value)}" for name in names]
        members = "\n\n".join(_members(entry))
        return _directive("py:class", heads, f"{body}\n\n{members}", "::::::")
    if callable(entry.value):
        heads = [f"{name}{text}" for name in names for text in spelling.of_function(entry.name, entry.value)]
        return _directive("py:function", heads, body, "::::::")
    return _directive("py:data", names, body or f"`{_shown(entry.value)}`", "::::::")


def _directive(kind: str, heads: list[str], body: str, fence: str) -> str:
    return f"{fence}{{{kind}}} {spelling.NEXT.join(heads)}\n\n{body.strip()}\n{fence}"


@cache
def _described() -> frozenset[int]:
    """Return the classes that have an entry: their methods are described there, not again in every subclass."""
    return frozenset(id(entry.value) for page in pages() for entry in page.entries if inspect.isclass(entry.value))


def _members(entry: Entry) -> Iterator[str]:
    """Yield the methods and properties of a class that say what they do."""
    link = link_from(entry.module, entry.full)
    for name, value, about in members(entry.value):
        body = docstrings.to_markdown(about, link)
        if isinstance(value, property):
            yield _directive("py:property", [name], body, ":::::")
        else:
            kind = {staticmethod: "py:staticmethod", classmethod: "py:classmethod"}.get(type(value), "py:method")
            heads = [f"{name}{text}" for text in spelling.of_method(entry.value, name, value)]
            yield _directive(kind, heads, body, ":::::")


def members(cls: type) -> Iterator[tuple[str, Any, str]]:
    """Yield (name, attribute, docstring) of what a class defines itself or takes from bases that have no entry."""
    seen: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("glassgrad") or (base is not cls and id(base) in _described()):
            break
        for name, value in vars(base).items():
            about = _doc_of_member(value)
            if name.startswith("_") or name in seen or not about or isinstance(cls, enum.EnumMeta):
                continue
            seen.add(name)
            yield name, value, about


def _doc_of_member(value: Any) -> str:
    if isinstance(value, property | staticmethod | classmethod) or inspect.isfunction(value):
        return inspect.cleandoc(value.__doc__ or "")
    return ""


__all__ = ["Page", "index", "known", "members", "pages", "text_of"]
