"""Pages that show printed output show the current output."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

import glassgrad as gg

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("```llvm output", "```gas output", "```text output", "```html output")
PAGES = [path for path in sorted((ROOT / "docs").rglob("*.md")) if any(word in path.read_text() for word in WORDS)]
NATIVE = ("```llvm output", "```gas output")


@pytest.fixture(scope="module")
def listings() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        yield importlib.import_module("sitegen.listings")
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_show_what_is_printed(
    page: Path, listings: ModuleType, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    native = any(word in text for word in NATIVE)
    if native:
        pytest.importorskip("llvmlite", reason="the page shows native code")
        if not listings.has_avx2():
            pytest.skip("the page shows code for x86-64 with AVX2")
    if "import torch\n" in text:
        pytest.importorskip("torch", reason="the page compares with PyTorch")
    if "from sklearn" in text:
        pytest.importorskip("sklearn", reason="the page uses scikit-learn")
    if "import onnxruntime\n" in text:
        pytest.importorskip("onnxruntime", reason="the page runs what it exports")
    if "import onnxruntime\n" in text or "export_c(" in text:
        monkeypatch.chdir(tmp_path)  # where the page leaves its files
    gg.manual_seed(0)
    with listings.common_machine() if native else nullcontext():
        if request.config.getoption("--update-goldens"):
            page.write_text(listings.refreshed(text), encoding="utf-8")
            return
        found = listings.listings(text)
    assert found
    for listing in found:
        assert listing.agrees, (
            f"{page.name} shows\n{listing.shown}\nbut its code prints\n{listing.printed}\n"
            "--update-goldens writes it into the page; then read whether the text around it still holds"
        )


def test_what_the_compiler_page_says_about_its_listings(listings: ModuleType) -> None:
    """Words of the prose that would be wrong if a listing changed."""
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    shown = {word: text.split(f"```{word} output\n")[1].partition("```")[0] for word in ("llvm", "gas")}
    assert shown["llvm"].count("load <8 x float>") == 8
    assert shown["llvm"].count("store <8 x float>") == 4
    assert shown["gas"].count("vfnmadd213ps") == shown["gas"].count("vmulps") == 4
    assert "multiply+subtract+multiply " in text
    assert "max+subtract+exp+6 more  " in text
    traced = text.partition("print(step.traced)")[2].partition("loss: ")[0]
    assert traced.partition("logits: ")[2].count(": ") == 11, "cross_entropy is these and the loss: twelve"
    steps = {line.split()[0]: line for line in text.splitlines() if line.startswith("eliminate_")}
    assert "(" not in steps["eliminate_common"]
    assert "(-" in steps["eliminate_dead"]
    assert "softmax" in text.partition("simplify=True")[2].partition("## LLVM")[0]


def test_a_wrong_listing_is_seen(listings: ModuleType) -> None:
    page = "```python\nprint(6 * 7)\n```\n\n```text output\n41\n```\n"
    (wrong,) = listings.listings(page)
    assert not wrong.agrees
    assert listings.refreshed(page) == page.replace("41", "42")
    assert all(one.agrees for one in listings.listings(listings.refreshed(page)))
    with pytest.raises(ValueError, match="does not show"):
        listings.listings("```python\nprint(1)\n```\n")
    with pytest.raises(ValueError, match="no code printed"):
        listings.listings("```text output\n1\n```\n")
    timed = "```python\nprint('took 0.52 s')\n```\n```text output\ntook 0.11 s\n```\n"
    assert listings.listings(timed)[0].agrees
