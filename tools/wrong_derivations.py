"""Make docs/checking_a_derivation.md: the diagnoses of `check_my_backward` for wrong derivations, and its score.

Run `python tools/wrong_derivations.py`; a test checks that the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "checking_a_derivation.md"

INTRODUCTION = """# Checking a derivation by hand

`glassgrad.verify.check_my_backward(derivation, forward, inputs)` runs a hand-written backward pass line by line and
compares every gradient with the true gradient. It names the first wrong line and, if it can, the mistake in it. The
derivation is text or a function; it assigns `dname` for each variable `name` of `forward`.

```python
import numpy as np
from glassgrad.verify import check_my_backward

def forward(x, w, b):
    h = x @ w + b
    return (h * h).sum()

rng = np.random.default_rng(0)
inputs = {"x": rng.normal(size=(4, 3)), "w": rng.normal(size=(3, 2)), "b": rng.normal(size=2)}
report = check_my_backward("dh = 2 * h\\ndw = x.T @ dh\\ndb = dh", forward, inputs)
```

```text output
line   1 | dh              | exact: True  | approximate: True  | maxdiff: 0
line   2 | dw              | exact: True  | approximate: True  | maxdiff: 0
line   3 | db              | exact: False | approximate: False | shapes: (4, 2) and (2,)  <- wrong

The first wrong line is line 3:
    db = dh
db: a missing sum over a broadcast axis. dh.sum(axis=0) instead of dh.
Not derived: dx.
```

The true gradients come from one backward walk over the tape. The walk also records the term that each *use* of a
variable contributes, so the check can name a forgotten term. Otherwise the check makes small edits to the wrong line (a
sign, a transpose, a sum over an axis, a division by a size, another variable) until one of them gives the true
gradient. This edit is the diagnosis.

## Score

There are {total} derivations with one mistake each. The check names the right line of {lines} and the mistake of
{kinds}. A test also makes about 300 mistakes by machine, at every possible place; the check finds all of their lines
and more than 97 of 100 kinds.

| derivation | right | written | found |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return the page."""
    from glassgrad.verify import check_my_backward
    from tests.verify.broken_derivations import BROKEN, FAMILIES, broken_source

    rows, lines, kinds = [], 0, 0
    for case in BROKEN:
        family = FAMILIES[case.family]
        source, line = broken_source(case)
        report = check_my_backward(source, family.forward, family.inputs, show=False)
        found = report.diagnosis.kind if report.diagnosis is not None else "nothing"
        named, told = report.wrong_line == line, found == case.kind
        lines, kinds = lines + named, kinds + told
        mark = found if told else f"{found} (expected: {case.kind})"
        written = f"`{case.wrong}`" if case.wrong else "(left out)"
        rows.append(f"| {case.family} | `{case.right}` | {written} | {mark}{'' if named else ', in another line'} |")
    head = (
        INTRODUCTION.replace("{total}", str(len(BROKEN))).replace("{lines}", str(lines)).replace("{kinds}", str(kinds))
    )
    return head + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
