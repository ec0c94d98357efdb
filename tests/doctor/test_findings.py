"""A watch shows its findings everywhere; each finding has a stable name and a section in the docs."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

import glassgrad as gg
from glassgrad import doctor, nn
from glassgrad.doctor import rules
from glassgrad.doctor.facts import Finding

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
TITLES = {
    one.name
    for family in (rules.RULES, rules.RUN_RULES, rules.SETUP_RULES, rules.EXAMINATION_RULES, rules.DATA_RULES)
    for one in family
}
OTHERS = (
    "NaN in the forward pass of the model",
    "inf in the forward pass of the loss",
    "NaN in the backward pass",
    "inf in the backward pass",
    "NaN in the step of AdamW",
    "inf in the step of SGD",
    "NaN in the inputs",
    "NaN in the targets",
    "NaN in a gradient",
    "inf in a parameter",
    "NaN in the data",
    "NaN in a compiled step",
    "NaN in a step",
    "graph grows",
    "a change helps",
    "worth a look",
)


def finding(title: str) -> Finding:
    return Finding(title, "error", "what is seen", "what to do")


def watched(report: io.StringIO | None = None) -> Any:
    gg.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = gg.optim.SGD(model.parameters(), lr=0.01)
    x, y = gg.randn(32, 4), gg.randn(32, 1)
    with doctor.watch(model, optimizer, report=report is not None, file=report) as seen:
        for _ in range(8):
            (model(x) - y).square().mean().backward()
            optimizer.step()
    return seen


def test_print_repr_and_notebook_show_the_findings() -> None:
    report = io.StringIO()
    seen = watched(report)
    assert str(seen) + "\n" == report.getvalue()
    assert "zero_grad is missing" in str(seen)
    assert repr(seen) == f"watch of Linear\n{seen}"
    html = seen._repr_html_()
    assert html.startswith("<div><code>watch of Linear<br>findings     1   (8 steps watched")
    assert "<caption" in html
    assert "findings.html#zero_grad-is-missing" in html


def test_a_watch_that_has_seen_nothing_yet_can_be_shown() -> None:
    seen = doctor.watch(nn.Linear(2, 1), report=False)
    assert "none: nothing here looks wrong   (0 steps watched, 0 sampled)" in repr(seen)
    assert "0x" not in seen._repr_html_()


def test_the_report_leads_to_the_page() -> None:
    (found,) = watched().findings
    assert (found.name, found.page) == ("zero_grad-is-missing", "findings.html#zero_grad-is-missing")
    assert f"see {found.page}" in str(watched())


@pytest.mark.parametrize("title", sorted(TITLES | set(OTHERS)))
def test_every_finding_has_a_heading_with_a_remedy(title: str) -> None:
    text = PAGE.read_text()
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert anchors.count(finding(title).name) == 1, f"docs/findings.md lacks a heading for {title!r}"
    body = re.split(r"^##.*$", text, flags=re.MULTILINE)
    assert all(len(part.split()) > 5 for part in body[1:] if part.strip())


def test_variants_of_a_finding_share_a_name() -> None:
    names = {finding(title).name for title in OTHERS[:6]}
    assert names == {"nan-in-the-forward-pass", "nan-in-the-backward-pass", "nan-in-the-step"}
