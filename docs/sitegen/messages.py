"""The page of all messages, from glassgrad.errors."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from html import escape
from importlib import import_module

from glassgrad import errors
from glassgrad.errors.kinds import Message
from sitegen.optable import WIDE, raw


def areas() -> Iterator[tuple[str, list[tuple[str, Message]]]]:
    """Yield (what the area is about, its messages by name)."""
    for module in sorted(pkgutil.iter_modules(errors.__path__), key=lambda module: module.name):
        source = import_module(f"glassgrad.errors.{module.name}")
        own = [(name, value) for name, value in vars(source).items() if isinstance(value, Message)]
        if own:
            yield (inspect.getdoc(source) or module.name).partition("\n")[0].rstrip("."), own


def page() -> str:
    """Return the page: Markdown, its tables in HTML."""
    listed = list(areas())
    total = sum(len(own) for _, own in listed)
    head = (
        f"All {total} messages that glassgrad can give, from the one place where they are written. Each says what "
        "was given, what was expected, where in your code, and what to do next. *Words like this* stand "
        "for what is known only when it happens."
    )
    parts = [f"{WIDE}# Messages", head]
    for heading, own in listed:
        rows = "".join(
            f"<tr><td><code>{name.replace('_', '_<wbr>')}</code><div class='aliases'>{message.kind.__name__}</div></td>"
            f"<td class='message'>{text_of(message)}</td></tr>"
            for name, message in own
        )
        parts.append(f"## {heading}\n\n" + raw(f"<table class='made messages'>{rows}</table>"))
    return "\n\n".join(parts) + "\n"


def text_of(message: Message) -> str:
    """Return a template as HTML, its slots marked."""
    text = escape(message.template)
    text = re.sub(r"\{(\w+)[^}]*\}", r"<span class='slot'>\1</span>", text)
    return text.replace("{{", "{").replace("}}", "}").replace("\n", "<br>")


__all__ = ["areas", "page", "text_of"]
