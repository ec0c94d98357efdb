"""`glassgrad info --bug`: the text of a report, with the facts filled in and short checks of the installation.

The checks tell a fault of the library from one of the installation: each computes something whose result is known.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from glassgrad.errors import GlassgradError

_HEAD = """\
### The shortest program that shows it

```python
# Ten lines with made-up data are best. If PyTorch does something else, say what.
```

### What happens, and what you expected

```text
The whole message. GLASSGRAD_FULL_TRACEBACK=1 shows the frames that are usually hidden.
```
"""
# What a broken installation raises: the report says it, and goes on with the next check.
FAULTS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError),
    *(OSError, RuntimeError, SyntaxError, TypeError, ValueError, GlassgradError),
)


def report(facts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the report as Markdown; paths below the user's home begin with `~`.

    Args:
        facts: what `glassgrad info` shows, by heading.
    """
    results = {name: outcome(check) for name, check in CHECKS.items()}
    width = max(map(len, results))
    checks = "\n".join(f"{name:{width}}  {result}" for name, result in results.items())
    listed = "\n".join(_lines(facts))
    return f"{_HEAD}\n### Checks\n\n```text\n{checks}\n```\n\n### Facts\n\n```text\n{without_home(listed)}\n```"


def _lines(facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = []
    for heading, values in facts.items():
        found.append(heading)
        found += [f"  {name}  {value}" for name, value in values.items()] or ["  none"]
    return found


def without_home(text: str) -> str:
    """Return a text in which the user's home, and so the user's name, is `~`."""
    try:
        home = str(Path.home())
    except RuntimeError:  # there is none
        return text
    return text if len(home) < 2 else text.replace(home, "~")  # a home of "/" names nobody


def outcome(check: Callable[[], str]) -> str:
    """Return what a check found, or the first line of the error that ended it."""
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = check()
    except FAULTS as error:
        return f"fails: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return "; ".join([found, *(str(one.message).splitlines()[0] for one in seen)])


def _is(found: float, expected: float) -> str:
    return "works" if abs(found - expected) <= 1e-5 * abs(expected) else f"gives {found} instead of {expected}"


def _gradient() -> str:
    import glassgrad as gg

    w = gg.tensor(2.0, requires_grad=True)
    (w * w * w).backward()
    assert w.grad is not None
    return _is(w.grad.item(), 12.0)


def _product() -> str:
    """Multiply matrices whose product is known: a 37 x 41 by a 41 x 43 one, which no vector divides."""
    import glassgrad as gg

    return _is((gg.ones(37, 41) @ gg.ones(41, 43)).sum().item(), 37.0 * 41 * 43)


def _compiled(backend: str) -> Callable[[], str]:
    def check() -> str:
        import glassgrad as gg

        weight = gg.ones(41, 43, requires_grad=True)

        def step(x: gg.Tensor) -> gg.Tensor:
            weight.grad = None
            loss = (x @ weight).sum()
            loss.backward()
            assert weight.grad is not None
            total: gg.Tensor = loss.detach() + weight.grad.sum()
            return total

        return _is(gg.compile(step, backend=backend)(gg.ones(37, 41)).item(), 2.0 * 37 * 41 * 43)

    return check


def _file() -> str:
    import glassgrad as gg

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.safetensors"
        gg.save({"weights": gg.ones(3)}, path)
        return _is(gg.load(path)["weights"].sum().item(), 3.0)


CHECKS: dict[str, Callable[[], str]] = {
    "a gradient": _gradient,
    "a matrix product": _product,
    "a compiled step, native code": _compiled("llvm"),
    "a compiled step, NumPy program": _compiled("numpy"),
    "a file of weights": _file,
}
