"""Run the examples of the op table and write their current results: `python tools/examples.py`.

The examples are the sections of src/glassgrad/ops/examples.txt: a function's name in brackets, and calls after `>>> `.
This program adds a section for an elementwise function without one, with numbers from its domain, and for a function
that writes into its tensor, from the example of its counterpart. For other functions write `[name]` and a call by hand.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import functools
import io
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402 - found by the line above, as those below

import glassgrad as gg  # noqa: E402 - as above
from glassgrad.engine import public  # noqa: E402 - as above
from glassgrad.ops import examples  # noqa: E402 - as above
from glassgrad.ops.core import Elementwise  # noqa: E402 - as above
from glassgrad.ops.names import ALIASES  # noqa: E402 - as above

ABOUT = "# A call for each function, and what it returns: written and read by tools/examples.py.\n"
# Numbers for the first, second and third argument, tried in this order.
NUMBERS = (
    ([-1.0, 0.5, 2.0], [3.0, 1.5, -0.5], [0.5, 1.0, 2.0]),
    ([0.5, 1.0, 2.0], [3.0, 1.5, 0.5], [1.0, 2.0, 3.0]),
    ([-0.5, 0.1, 0.9], [0.3, -0.7, 0.2], [0.1, 0.2, 0.3]),
    ([0.1, 0.5, 0.9], [0.3, 0.7, 0.2], [0.2, 0.4, 0.6]),
    ([1.5, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    ([6, 3, 12], [5, 1, 2], [1, 2, 3]),
)


def ran(example: str) -> str:
    """Return an example with the current output of its lines."""
    scope: dict[str, Any] = {"gg": gg, "nn": gg.nn, "F": gg.nn.functional}
    lines = []
    gg.manual_seed(0)
    for part in doctest.DocTestParser().get_examples(example):
        first, *rest = part.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
        with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(part.source, "example", "single"), scope)  # noqa: S102 - a line of this repository
        lines += [line.rstrip() or "<BLANKLINE>" for line in out.getvalue().splitlines()]
    return "\n".join(lines)


def elementwise(name: str) -> str | None:
    """Return a call of an elementwise function; None for any other."""
    function = public.NAMES[name]
    prim = getattr(function, "primitive", None)
    if isinstance(prim, Elementwise):
        for numbers in NUMBERS:
            given = numbers[: prim.arity]
            if _defined(function, given):
                return f">>> gg.{name}({', '.join(f'gg.tensor({one})' for one in given)})"
    return None


def _defined(function: Any, numbers: tuple[list[float], ...]) -> bool:
    """Return whether a call succeeds without a warning and gives finite numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*map(gg.tensor, numbers))
        return bool(np.isfinite(np.asarray(result.array, dtype=complex)).all())
    except (TypeError, ValueError, RuntimeError, RuntimeWarning):
        return False


def in_place(name: str, known: dict[str, str]) -> str | None:
    """Return a call of `name`, which ends in `_`, made from the example of the function without the underscore."""
    plain = name[:-1] if name[:-1] in known else ALIASES.get(name[:-1], "")
    calls = [line[4:] for line in known.get(plain, "").split("\n") if line.startswith(">>> ")]
    if not calls or not calls[-1].startswith(f"gg.{plain}("):
        return None
    call = ast.parse(calls[-1], mode="eval").body
    first, *others = [ast.unparse(one) for one in (*call.args, *call.keywords)]
    own = [*calls[:-1], *([] if first.isidentifier() else [f"t = {first}"])]
    target = first if first.isidentifier() else "t"
    return "\n".join(f">>> {line}" for line in [*own, f"{target}.{name}({', '.join(others)})"])


def main() -> None:
    """Rewrite the file."""
    known = dict(examples.table())
    for name, function in public.NAMES.items():
        if not callable(function) or ">>> " in (function.__doc__ or "") or name in ALIASES:
            continue
        made = known.get(name) or (in_place(name, known) if name.endswith("_") else elementwise(name))
        if made is not None:
            known[name] = made
    first: dict[int, str] = {}  # other names of the same function need none
    for name in sorted(known, key=lambda name: (name in ALIASES, name.count("."), name)):
        first.setdefault(id(functools.reduce(getattr, name.split("."), gg)), name)
    known = {name: known[name] for name in first.values()}
    sections = [f"\n[{name}]\n{ran(text)}\n" for name, text in sorted(known.items())]
    file = Path(examples.FILE)
    file.write_text(ABOUT + "".join(sections), encoding="utf-8")
    print(f"{len(known)} examples in {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
