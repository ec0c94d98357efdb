"""The page of all ops, from the registry and from the run of PyTorch's samples (docs/opinfo.json)."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from types import CodeType
from typing import Any

import glassgrad as gg
from glassgrad import errors
from glassgrad.compile.llvm.code_form import native_code
from glassgrad.ops import names
from glassgrad.ops.core import REGISTRY, Primitive
from sitegen.coverage import CHECKS, signs

OPINFO = Path(__file__).resolve().parents[1] / "opinfo.json"
FAMILIES = {
    "elementwise": "Arithmetic, exponentials, trigonometry, comparisons",
    "compound": "Composed of elementwise ops",
    "activation": "Activations",
    "special": "Special functions",
    "reduce": "Reductions",
    "norms": "Norms",
    "scan": "Scans and products",
    "sort": "Sorting and order statistics",
    "shape": "Shapes",
    "arrange": "Arranging",
    "strided": "Diagonals and windows",
    "index": "Indexing and gathering",
    "scatter": "Scattering",
    "data_dependent": "Results whose shape depends on the numbers",
    "linalg": "Products of matrices",
    "solve": "Inverses and equations",
    "decompose": "Factorisations",
    "einsum": "Einsum",
    "spatial": "Convolution, pooling, resizing",
    "functional": "Layers and losses as functions (nn.functional)",
    "fft": "Fourier transforms (fft)",
    "complexes": "Complex numbers",
}


# Modules whose functions stand with those of another family.
NEAR = {
    "factorise": "decompose", "lu": "decompose", "eigen": "decompose", "pooling": "spatial", "resize": "spatial",
    "sampling": "spatial", "statistics": "reduce", "spectra": "fft", "special_functions": "special", "names": "special",
}  # fmt: skip  # a table
# Says that a page has long tables: no column of contents takes width from them.
WIDE = "---\nhide-toc: true\n---\n\n"


@dataclass
class Op:
    """One row: a public function or a primitive, with what the code says about it."""

    name: str
    family: str
    aliases: list[str] = field(default_factory=list)
    formula: str = ""
    derivative: str = ""
    kind: str = ""
    checks: str = ""
    notes: str = ""
    takes_complex: bool = False
    native: str = ""
    parts: list[Primitive] = field(default_factory=list)
    torch: list[dict[str, Any]] = field(default_factory=list)


def public_ops() -> list[Op]:
    """Return a row for every public function, with its other names."""
    gg.Tensor  # noqa: B018 - the registry is filled when the engine is first used
    entries = json.loads(OPINFO.read_text(encoding="utf-8")) if OPINFO.exists() else []
    functions: dict[int, tuple[str, Callable[..., Any], list[str]]] = {}
    for name, function in [*names.PUBLIC.items(), *_extra()]:
        known = functions.setdefault(id(function), (name, function, []))
        if name != known[0]:
            known[2].append(name)
    rows = []
    for name, function, aliases in functions.values():
        row = _row(name, function)
        row.aliases = sorted(set(aliases) - {row.name})
        row.torch = torch_evidence(row, entries)
        rows.append(row)
    return rows


@cache
def _families() -> dict[str, str]:
    return {name: row.family for row in public_ops() for name in (row.name, *row.aliases) if name in names.PUBLIC}


def family_of(name: str) -> str | None:
    """Return the family of a function of `glassgrad`; None of what is no op."""
    return _families().get(names.ALIASES.get(name, name))


def _extra() -> Iterator[tuple[str, Callable[..., Any]]]:
    import glassgrad.fft
    import glassgrad.linalg
    import glassgrad.nn.functional as F

    for holder in (F, glassgrad.linalg, glassgrad.fft):
        for name in holder.__all__:
            function = getattr(holder, name)
            fourier = holder is glassgrad.fft
            if (fourier or name not in names.PUBLIC) and callable(function) and not inspect.isclass(function):
                yield name, function


def _row(name: str, function: Any) -> Op:
    prim = getattr(function, "primitive", None)
    plain = inspect.unwrap(function)
    module = getattr(plain, "__module__", "") or ""
    if prim is None and name in REGISTRY and not module.startswith("glassgrad.ops.fft"):
        prim = REGISTRY[name]
    if prim is not None:
        module = _home(prim) or module
        parts = [prim]
    else:
        parts = sorted(primitives_in(plain), key=lambda part: part.name)
    row = Op(name, _family(module), parts=parts)
    row.takes_complex = getattr(function, "takes_complex", prim is not None and prim.takes_complex)
    if prim is not None:
        row.formula, row.derivative, row.kind, row.notes = prim.formula, prim.derivative, prim.kind, prim.notes
        row.checks, row.native = signs(prim), native_code(prim)
    else:
        row.formula, row.kind = first_line(plain) or first_line(function), "composed"
        used = [part for part in parts if part.differentiable]
        row.derivative = ", ".join(part.name for part in used[:8]) + (", …" if len(used) > 8 else "")
    return row


def _home(prim: Primitive) -> str:
    """Return the module that declares a primitive."""
    for module in names._MODULES:
        if any(value is prim for value in vars(module).values()):
            return module.__name__
    return ""


def _family(module: str) -> str:
    last = module.rpartition(".")[2]
    if module.startswith("glassgrad.nn") or last.startswith("fused") or last == "ctc":
        return "functional"
    last = NEAR.get(last, last)
    return last if last in FAMILIES else "compound"


def first_line(function: Any) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")


def primitives_in(function: Any, depth: int = 4) -> set[Primitive]:
    """Return the primitives that a function's code names, directly or through our own functions."""
    found: set[Primitive] = set()
    seen: set[int] = set()

    def visit(value: Any, left: int) -> None:
        if isinstance(value, Primitive):
            found.add(value)
            return
        plain = inspect.unwrap(value) if callable(value) else value
        ours = inspect.isfunction(plain) and plain.__module__.startswith(("glassgrad.ops", "glassgrad.nn"))
        if not ours or left == 0 or id(plain) in seen:
            return
        seen.add(id(plain))
        around = [cell.cell_contents for cell in plain.__closure__ or ()]
        for named in [*_named(plain.__code__, plain.__globals__), *around]:
            visit(named, left - 1)

    visit(function, depth)
    return found


def _named(code: CodeType, scope: dict[str, Any]) -> Iterator[Any]:
    """Yield what the names in some code stand for: globals, and attributes of modules among them."""
    modules = [scope[name] for name in code.co_names if inspect.ismodule(scope.get(name))]
    for name in code.co_names:
        if name in scope:
            yield scope[name]
        for module in modules:
            # A name that `errors` lacks would load all areas of messages.
            if module.__name__.startswith("glassgrad.") and module is not errors and hasattr(module, name):
                yield getattr(module, name)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named(constant, scope)


def torch_evidence(row: Op, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the verdicts of PyTorch's samples on a function, under any of its names."""
    spellings = {row.name, *row.aliases, *(alias for alias, name in names.ALIASES.items() if name == row.name)}
    fourier = row.family == "fft"
    return [entry for entry in entries if entry["ours"] in spellings and entry["op"].startswith("fft.") == fourier]


# --- the page -------------------------------------------------------------------------------------


def page() -> str:
    """Return the page: Markdown, its tables in HTML."""
    rows = public_ops()
    shown = {part.name for row in rows if row.kind != "composed" for part in row.parts}
    hidden = [prim for prim in REGISTRY.values() if prim.name not in shown and prim.name != "pick"]
    inner = [_internal(prim, sorted(row.name for row in rows if prim in row.parts)) for prim in hidden]
    parts = [_head(rows, inner), raw(_legend() + _filter())]
    for family, heading in FAMILIES.items():
        own = sorted((row for row in rows if row.family == family), key=lambda row: row.name)
        if own:
            parts.append(_section(heading, own))
    parts.append(_section("Primitives behind the scenes", sorted(inner, key=lambda row: row.name)))
    return "\n\n".join([*parts, _lacking()]) + "\n"


def _lacking() -> str:
    """List the entries of PyTorch's table that are no ops here, with the reasons that the tests hold."""
    entries = json.loads(OPINFO.read_text(encoding="utf-8"))
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        if entry["verdict"] == "lacking":
            reasons.setdefault(entry["reason"], []).append(f"`{entry['op']}`")
    lines = [f"| {', '.join(ops)} | {why} |" for why, ops in reasons.items()]
    return "\n".join(["## In PyTorch's table and not here", "", "| op | why |", "|---|---|", *lines])


def raw(html: str) -> str:
    """Return HTML as a block of a Markdown page."""
    return f"````{{raw}} html\n{html}\n````"


def _internal(prim: Primitive, users: list[str]) -> Op:
    """Return the row of a primitive without a public name, with the public functions that it is part of."""
    part_of = f"part of {', '.join(users[:6])}{', …' if len(users) > 6 else ''}" if users else ""
    notes = "; ".join(filter(None, [prim.notes, part_of]))
    native, known = native_code(prim), signs(prim)
    return Op(
        prim.name, "inner", [], prim.formula, prim.derivative, prim.kind, known, notes, prim.takes_complex, native
    )


def _head(rows: list[Op], inner: list[Op]) -> str:
    compared = [row for row in rows if row.torch]
    samples = sum(entry["agrees"] for row in compared for entry in row.torch)
    wrong = [row for row in compared if any(entry["verdict"] == "disagrees" for entry in row.torch)]
    return (
        f"{WIDE}# All ops\n\n"
        f"This page is made from the table of primitives. {len(rows)} public functions stand on {len(REGISTRY)} "
        "primitives. Every derivative of a primitive was checked by the tests named in its row, which iterate over the "
        f"table and know nothing else of it. {len(compared)} functions were also run on PyTorch's own samples: "
        f"{samples:,} calls agree in values and gradients, {len(wrong)} functions differ for the reason given.\n"
    )


def _legend() -> str:
    items = "".join(
        f"<tr><td><b class='sign'>{escape(check.sign)}</b></td><td>{check.shows}</td>"
        f"<td><code>{escape(check.test.replace('::', ' · '))}</code></td></tr>"
        for check in CHECKS
    )
    kinds = (
        "<p><b>Kinds.</b> <i>elementwise</i>: states its local derivative; both modes, broadcasting and native code "
        "follow from it. <i>linear</i>: states its transpose; forward mode is the op itself. <i>custom</i>: states "
        "both rules. <i>fused</i>: a hand-derived gradient and a decomposition, held against each other. "
        "<i>composed</i>: an ordinary function; its derivative is that of the primitives listed. Below, g is the "
        "cotangent and y the result.</p>"
        "<p><b>Complex numbers.</b> <i>right</i>: the entry states that value, gradient and tangent are right "
        "for complex arguments, and <code>tests/ops/test_complex.py</code> holds them against differences. "
        "<i>refused</i>: it states nothing, and complex arguments are an error.</p>"
        "<p><b>Native code.</b> <i>forward</i>: derived from the forward that eager mode runs. <i>loop</i>: an "
        "expression of a fused loop. <i>view</i>: indices alone. <i>kernel</i>: code of its own. <i>parts</i>: written "
        "out in other primitives first. <i>none</i>: NumPy computes it between two parts of the step, for the reason "
        "given.</p>"
    )
    return (
        f"<details><summary>What the signs under “verified by” mean</summary><table class='made legend'>{items}</table>"
        "<p>Beside these, hypothesis draws random programs of up to 30 ops and compares values, gradients and second "
        "derivatives with PyTorch's (<code>tests/ops/test_random_graphs.py</code>), and programs of views and writes "
        "in place (<code>tests/ops/test_random_inplace.py</code>).</p></details>" + kinds
    )


def _filter() -> str:
    return (
        "<p><input id='filter' type='search' placeholder='Filter: a name, a formula, a kind …' aria-label='Filter' "
        "autocomplete='off'></p>"
    )


COLUMNS = ("op", "formula", "derivative", "kind", "native code", "complex", "verified by", "PyTorch's samples")


def _section(heading: str, rows: list[Op]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    body = "\n".join(_html_row(row) for row in rows)
    table = f"<table class='made ops'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"## {heading}\n\n{raw(table)}"


def _html_row(row: Op) -> str:
    aliases = f"<div class='aliases'>{escape(', '.join(row.aliases))}</div>" if row.aliases else ""
    notes = f"<div class='notes'>{escape(row.notes)}</div>" if row.notes else ""
    composed = row.kind == "composed"
    formula = (
        re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(row.formula))
        if composed
        else f"<code>{escape(row.formula)}</code>"
    )
    derivative = _derivative(row)
    checks = "".join(f"<b class='sign'>{escape(sign)}</b>" for sign in row.checks) if not composed else "its parts"
    if (not row.checks and not composed) or (composed and not row.derivative):
        checks = "<span class='none'>–</span>"
    numbers = "right" if row.takes_complex else "refused"
    anchor = f"<a id='op-{escape(row.family)}-{escape(row.name)}'></a>"
    return (
        f"<tr><td>{anchor}<b>{escape(row.name)}</b>{aliases}</td><td>{formula}{notes}</td><td>{derivative}</td>"
        f"<td>{row.kind}</td><td>{_native(row)}</td><td>{numbers}</td>"
        f"<td class='checks'>{checks}</td><td>{_agreement(row)}</td></tr>"
    )


def _native(row: Op) -> str:
    """Return the form of the native code; of a composed function, the parts that the host computes."""
    if row.kind != "composed":
        return escape(row.native)
    hosted = [part.name for part in row.parts if native_code(part).startswith("none")]
    return escape(f"its parts; none for {', '.join(hosted)}" if hosted else "its parts")


def _derivative(row: Op) -> str:
    if row.kind == "composed":
        return f"of {escape(row.derivative)}" if row.derivative else "<span class='none'>none</span>"
    if row.derivative in {"none", ""}:
        return "<span class='none'>none</span>"
    return f"<code>{escape(row.derivative)}</code>"


def _agreement(row: Op) -> str:
    if not row.torch:
        return "<span class='none'>–</span>"
    agrees = sum(entry["agrees"] for entry in row.torch)
    words = [f"<span class='good'>agrees</span> ({agrees})"] if agrees else []
    if shapes := sum(entry["shapes"] for entry in row.torch):
        words.append(f"random: shapes and dtypes agree ({shapes})")
    words += [
        f"<span class='bad'>differs</span> ({len(entry['disagrees'])}): {escape(entry['reason'])}"
        for entry in row.torch
        if entry["verdict"] == "disagrees"
    ]
    unsupported = [(why, item) for entry in row.torch for why, item in entry["unsupported"].items()]
    if unsupported:
        count = sum(item["count"] for _, item in unsupported)
        forms = "".join(
            f"<li><code>{escape(item['example'])}</code><br>{escape(why)} ({item['count']})</li>"
            for why, item in unsupported
        )
        words.append(f"<details><summary>{count} not supported</summary><ul>{forms}</ul></details>")
    return "<br>".join(words)


__all__ = ["FAMILIES", "WIDE", "Op", "family_of", "page", "public_ops", "raw"]
