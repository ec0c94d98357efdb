"""Docstrings as MyST Markdown: Google's sections, code in backticks, and plain text in which no sign is markup."""

from __future__ import annotations

import re
from collections.abc import Callable

# The sections that docstrings of this project have; the first group lists names, the others are text.
_NAMED = {"Args": "Arguments", "Called": "When called", "Raises": "Raises", "Attributes": "Attributes"}
_TEXT = {"Returns": "Returns", "Example": "Example", "Examples": "Example"}
_HEAD = re.compile(rf"^({'|'.join([*_NAMED, *_TEXT])}):$")
_ITEM = re.compile(r"^(\*{0,2}\w[\w ,.*]*): ?(.*)$")
_SPAN = re.compile(r"(``.+?``|`[^`\n]+`)")
_MARKUP = re.compile(r"([\\*_\[\]<>#|~${}=])")

Link = Callable[[str], str | None]


def to_markdown(text: str, link: Link = lambda word: None) -> str:
    """Return a docstring as Markdown.

    Args:
        text: a docstring without its common indentation.
        link: the full name of what a piece of code names, or None.
    """
    parts = []
    for head, lines in _sections(text):
        if head in _NAMED:
            parts.append(f"**{_NAMED[head]}**\n\n{_items(lines, link)}")
        elif head:
            listed = head == "Returns" and any(line.startswith("shape: ") for line in lines)
            parts.append(f"**{_TEXT[head]}**\n\n{(_items if listed else _paragraphs)(lines, link)}")
        else:
            parts.append(_paragraphs(lines, link))
    return "\n\n".join(filter(None, parts))


def summary(text: str, link: Link = lambda word: None) -> str:
    """Return the first paragraph of a docstring as one line of Markdown."""
    return inline(" ".join(text.partition("\n\n")[0].split()), link)


def inline(text: str, link: Link = lambda word: None) -> str:
    """Return running text with its code as code, links to what that names, and everything else taken literally."""
    parts = _SPAN.split(text)
    return "".join(_code(part, link) if place % 2 else _MARKUP.sub(r"\\\1", part) for place, part in enumerate(parts))


def _code(span: str, link: Link) -> str:
    word = span.strip("`")
    target = link(word)
    return f"{{py:obj}}`{word} <{target}>`" if target else f"`{word}`"


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """Split a docstring into (heading or "", lines without the heading's indentation)."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.expandtabs().splitlines():
        head = _HEAD.match(line)
        if head:
            found.append((head[1], []))
        elif found[-1][0] and line and not line.startswith(" "):
            found.append(("", [line]))  # the section is over
        else:
            found[-1][1].append(line.removeprefix("    ") if found[-1][0] else line)
    return found


def _items(lines: list[str], link: Link) -> str:
    """Return `name: text` lines and their continuations as a definition list."""
    items: list[tuple[str, list[str]]] = []
    for line in filter(str.strip, lines):
        item = None if line.startswith(" ") else _ITEM.match(line)
        if item:
            items.append((item[1], [item[2]]))
        elif items:
            items[-1][1].append(line.strip())
        else:
            items.append(("", [line.strip()]))
    return "\n\n".join(f"{_names(name)}\n: {inline(' '.join(words), link) or '-'}" for name, words in items)


def _names(text: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in text.split(","))


def _paragraphs(lines: list[str], link: Link) -> str:
    """Return paragraphs, lists, indented code and examples."""
    parts: list[str] = []
    for block in _blocks(lines):
        if block[0].lstrip().startswith(">>>"):
            parts.append(_fence("pycon", block))
        elif block[0].startswith("    "):
            parts.append(_fence("text", block))
        else:
            parts.append("\n".join(_line(line, link) for line in block))
    return "\n\n".join(parts)


def _line(line: str, link: Link) -> str:
    """Return one line of a paragraph; a bullet stays one, nothing else at its beginning becomes markup."""
    rest = line.lstrip()
    indent = line[: len(line) - len(rest)]
    bullet = rest.startswith(("- ", "* "))
    rest = rest[2:] if bullet else rest
    rest = re.sub(r"^([-+]|\d+[.)])(?= )", r"\\\1", inline(rest, link)) if not bullet else inline(rest, link)
    return f"{indent}{'- ' if bullet else ''}{rest.removesuffix('::') + ':' if rest.endswith('::') else rest}"


def _blocks(lines: list[str]) -> list[list[str]]:
    """Split lines at empty ones; an example goes on over empty lines as long as the next part is one too."""
    blocks: list[list[str]] = []
    fresh = True
    for line in lines:
        if not line.strip():
            fresh = True
            continue
        example = line.lstrip().startswith(">>>")
        within = bool(blocks) and blocks[-1][0].lstrip().startswith(">>>")
        coded = line.startswith("    ")
        if fresh and example and within:
            blocks[-1] += ["", line]
        elif fresh or (example and not within) or (not within and coded != blocks[-1][0].startswith("    ")):
            blocks.append([line])
        else:
            blocks[-1].append(line)
        fresh = False
    return blocks


def _fence(language: str, block: list[str]) -> str:
    margin = min(len(line) - len(line.lstrip()) for line in block if line)
    code = "\n".join(line[margin:] for line in block)
    return f"```{language}\n{code}\n```"


__all__ = ["inline", "summary", "to_markdown"]
