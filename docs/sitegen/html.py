"""Markdown to HTML, and the frame around every page. The frame is page.html, its looks are style.css."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

HERE = Path(__file__).resolve().parent


@cache
def read(name: str) -> str:
    """Return a file that lies beside this one."""
    return (HERE / name).read_text(encoding="utf-8")


def _code(text: str, language: str, attributes: str) -> str:
    try:
        lexer = get_lexer_by_name("pycon" if ">>> " in text else language or "text")
    except ClassNotFound:
        return ""
    coloured = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return f"<pre class='output'><code>{coloured}</code></pre>\n" if "output" in attributes.split() else coloured


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def render(text: str) -> tuple[str, str]:
    """Return (title, HTML) of a Markdown page; headings get anchors, links to .md files lead to .html."""
    markdown = MarkdownIt("commonmark", {"highlight": _code}).enable("table")
    tokens = markdown.parse(text)
    title = "glassgrad"
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            before.attrSet("id", _slug(token.content))
            if before.tag == "h1":
                title = re.sub(r"[`*]", "", token.content)
        for child in token.children or ():
            target = child.attrGet("href") if child.type == "link_open" else None
            if isinstance(target, str) and re.match(r"(?!\w+:)[^#]*\.md(#.*)?$", target):
                child.attrSet("href", re.sub(r"(README)?\.md(?=#|$)", _page_of, target))
    return title, markdown.renderer.render(tokens, markdown.options, {})


def _page_of(match: re.Match[str]) -> str:
    return "index.html" if match.group(1) else ".html"


def frame(title: str, body: str, navigation: list[tuple[str, list[tuple[str, str]]]], current: str) -> str:
    """Return a whole page; `navigation` lists (section, [(title, path)]), paths from the root of the site."""
    up = "../" * current.count("/")
    items = []
    for section, pages in navigation:
        links = "".join(
            f"<li><a{' class=here' if path == current else ''} href='{up}{path}'>{escape(name)}</a></li>"
            for name, path in pages
        )
        items.append(f"<h4>{escape(section)}</h4><ul>{links}</ul>" if section else f"<ul>{links}</ul>")
    wide = " class='wide'" if any(f"<table class='{kind}'" in body for kind in ("ops", "layers", "messages")) else ""
    script = f"<script>{read('filter.js')}</script>" if "id='filter'" in body else ""
    return read("page.html").format(
        title=escape(title),
        up=up,
        navigation="".join(items),
        body=body,
        wide=wide,
        script=script,
    )


def style() -> str:
    """Return the style sheet, with the colours of code for both schemes."""
    light = HtmlFormatter(style="default").get_style_defs("pre code")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre code")
    dark = f"@media (prefers-color-scheme: dark) {{\n{dark}\npre code {{ background: none; }}\n}}\n"
    return f"{read('style.css')}\n{light}\npre code {{ background: none; }}\n{dark}"


__all__ = ["frame", "render", "style"]
