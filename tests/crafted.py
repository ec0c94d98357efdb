"""Crafted file descriptions, for tests of robust reading."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any


def deep(depth: int, inner: Any) -> Any:
    """Return lists in lists."""
    value = inner
    for _ in range(depth):
        value = [value]
    return value


def crafted(whole: Any, draw: random.Random, strange: Sequence[Any], further: float) -> Any:
    """Return a description with one part replaced, removed, repeated or put elsewhere.

    `further` is how likely the part is one of a part.
    """
    whole = json.loads(json.dumps(whole))
    where, name = whole, draw.choice(sorted(whole))
    while isinstance(where[name], list | dict) and where[name] and draw.random() < further:
        where = where[name]
        name = draw.choice(sorted(where)) if isinstance(where, dict) else draw.randrange(len(where))
    change = draw.randrange(3)
    if change == 0:
        where[name] = draw.choice(strange)
    elif change == 1:
        del where[name]
    elif isinstance(where, list):
        where.append(where[name])
    else:
        where["another"] = where[name]
    return whole
