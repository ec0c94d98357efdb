"""What the site adds to Sphinx: entries with several signatures, links to the source, and the pages of source."""

from __future__ import annotations

import builtins
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains import python

from sitegen import public_names, reference, spelling
from sitegen.public_names import SOURCE, Place

FOLDER = "source"  # the pages of source, beside the others
FRAME = Path(__file__).with_name("source.html")


class Function(python.PyFunction):
    """A function with all its names and signatures."""

    def get_signatures(self) -> list[str]:
        """Return the signatures of one entry."""
        return self.arguments[0].split(spelling.NEXT)


class Method(python.PyMethod):
    """A method with all its signatures."""

    def get_signatures(self) -> list[str]:
        """Return the signatures of one entry."""
        return self.arguments[0].split(spelling.NEXT)


class Class(python.PyClasslike):
    """A class with all its names."""

    def get_signatures(self) -> list[str]:
        """Return the signatures of one entry."""
        return self.arguments[0].split(spelling.NEXT)


@cache
def places() -> dict[str, Place]:
    """Return where every name of the reference is written, methods included."""
    found: dict[str, Place | None] = {}
    for page in reference.pages():
        for entry in page.entries:
            for name in (entry.name, *entry.aliases):
                found[f"{entry.module}.{name}"] = public_names.place_of(entry)
            if isinstance(entry.value, type):
                for name, value, _ in reference.members(entry.value):
                    found[f"{entry.full}.{name}"] = public_names.place_of_value(value)
    return {name: place for name, place in found.items() if place}


def page_of(place: Place) -> str:
    """Return the name of the page that shows a file."""
    return f"{FOLDER}/{place.file.relative_to(SOURCE).with_suffix('').as_posix()}"


def add_source_links(app: Sphinx, doctree: nodes.document) -> None:
    """Append a link to the source to the first signature of every entry."""
    up = "../" * app.env.docname.count("/")
    for entry in doctree.findall(addnodes.desc):
        signature = entry.next_node(addnodes.desc_signature)
        if signature is None or entry.get("domain") != "py":
            continue
        name = ".".join(filter(None, (signature.get("module"), signature.get("fullname"))))
        if place := places().get(name):
            target = f"{up}{page_of(place)}.html#L-{place.line}"
            link = nodes.reference("", "", nodes.inline("", "source"), internal=True, refuri=target)
            link["classes"].append("source-link")
            signature += nodes.Text(" ")
            signature += link


def settle_types(app: Sphinx, doctree: nodes.document) -> None:
    """Lead the types in signatures to their entries, and leave other words as they are."""
    for signature in doctree.findall(addnodes.desc_signature):
        module = str(signature.get("module"))
        for word in list(signature.findall(addnodes.pending_xref)):
            target = str(word["reftarget"])
            full = reference.known().get(f"{module}.{target}") or TYPES.get(target)
            if full and not hasattr(builtins, target):  # `int` is Python's, not the dtype of that name
                word["reftarget"], word["refspecific"] = full, False
            else:
                word.replace_self(word.children)  # the engine would search all names for one that ends like this


# Types that other modules speak of.
TYPES = {"Module": "glassgrad.nn.Module", "Generator": "glassgrad.Generator", "Tensor": "glassgrad.Tensor"}


def mend_roles(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Give headings of the navigation their level, and write arguments as lines: a list without terms is none."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    context["body"] = re.sub(r"<dl>\n(.*?)</dl>", _as_lines, context.get("body", ""), flags=re.DOTALL)


def _as_lines(match: re.Match[str]) -> str:
    lines = match[1].replace("<dd>", '<span class="argument">').replace("</dd>", "</span>")
    return f'<span class="arguments">\n{lines}</span>'


def write_source(app: Sphinx, error: Exception | None) -> None:
    """Write the pages that show a file, with an anchor at every line.

    They need no navigation, so no template of the theme, which would take half a second for each.
    """
    if error is not None or not any(name.startswith("api/") for name in app.env.found_docs):
        return
    formatter = HtmlFormatter(linespans="L")
    frame = FRAME.read_text(encoding="utf-8")
    for name, file in sorted({page_of(place): place.file for place in places().values()}.items()):
        path = Path(app.outdir, f"{name}.html")
        if path.is_file() and path.stat().st_mtime >= max(file.stat().st_mtime, FRAME.stat().st_mtime):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        code = highlight(file.read_text(encoding="utf-8"), PythonLexer(), formatter)
        shown = file.relative_to(SOURCE.parent).as_posix()
        path.write_text(frame.format(title=shown, up="../" * name.count("/"), code=code), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    for kind, directive in {"function": Function, "method": Method, "class": Class}.items():
        app.add_directive_to_domain("py", kind, directive, override=True)
    app.connect("doctree-read", add_source_links)
    app.connect("doctree-read", settle_types)
    app.connect("html-page-context", mend_roles, priority=900)  # after the theme
    app.connect("build-finished", write_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
