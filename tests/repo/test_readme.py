"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")]


OURS, TWIN, COMPILED = EXAMPLES


def losses_of(program: str, library: str, weights: list[np.ndarray] | None) -> tuple[list[float], list[np.ndarray]]:
    """Run a loop of the README; return its losses and the weights and points that it began with."""
    begin, loop = program.split("points[:, 0]", maxsplit=1)
    loop = f"points[:, 0]{loop}".replace(".step()\n", ".step()\n    losses.append(loss.item())\n")
    scope: dict[str, Any] = {"losses": []}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(begin, scope)  # noqa: S102 - the README's own program
        assert scope["torch"].__name__ == library
        tensors = [*(p.detach() for p in scope["model"].parameters()), scope["points"]]
        for tensor, array in zip(tensors, weights or [], strict=False):
            tensor.copy_(scope["torch"].from_numpy(array))
        start = [tensor.numpy().copy() for tensor in tensors]
        exec(loop, scope)  # noqa: S102 - the README's own program
    assert float(out.getvalue()) == pytest.approx(scope["losses"][-1], abs=1e-4)
    return scope["losses"], start


def test_the_loop_and_its_twin_give_the_same_losses() -> None:
    pytest.importorskip("torch", reason="PyTorch is the twin")
    assert OURS.replace("glassgrad as torch", "torch").replace("from glassgrad", "from torch") == TWIN
    expected, weights = losses_of(TWIN, "torch", None)
    found, _ = losses_of(OURS, "glassgrad", weights)
    assert len(found) == 100
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert found[-1] < found[0] / 3


def test_the_loop_runs_where_there_is_no_pytorch() -> None:
    process = subprocess.run([sys.executable, "-c", OURS], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert float(process.stdout) < 0.4


def ratio(table: str, peer: str) -> float:
    """How many times our step's time a peer took, as recorded."""
    row = next(line for line in table.splitlines() if line.startswith(f"| {peer} "))
    return float(row.split("|")[4])


def test_claims_of_speed_are_those_that_were_measured() -> None:
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    w1 = results.partition("<!-- begin w1 -->")[2].partition("<!-- end w1 -->")[0]
    text = " ".join(README.split())
    assert "less than half the time of JAX's `jit` and less than a sixth of PyTorch's" in text
    assert ratio(w1, "JAX jit") > 2
    assert ratio(w1, "PyTorch eager") > 6
    assert "12,297 parameters" in w1, "the README speaks of 12,000 weights"


def test_whole_trainings_came_out_as_the_models_page_says() -> None:
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    text = " ".join((ROOT / "docs" / "models.md").read_text(encoding="utf-8").split())
    assert "differ by less than 0.01" in text
    assert "from a quarter of PyTorch's time (a GPT on names) to about as long" in text
    ratios = {}
    for name, table in re.findall(r"<!-- begin training-(\S+) -->(.*?)<!-- end", results, re.DOTALL):
        (ours, ours_ms), (theirs, theirs_ms) = (
            (float(row[2]), float(row[4]))
            for row in (line.split("|")[1:] for line in table.splitlines() if re.match(r"\| (glassgrad|PyTorch)", line))
        )
        assert abs(ours - theirs) < 0.01, name
        ratios[name] = ours_ms / theirs_ms
    assert min(ratios, key=ratios.__getitem__) == "names-gpt"
    assert ratios["names-gpt"] < 0.3
    assert max(ratios.values()) < 1.05


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs" / "adr").glob("*.md"))], ids=lambda page: page.name)
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not missing


def test_the_compiled_loop_runs_and_prints_itself() -> None:
    program = OURS + COMPILED
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "# backward: the forward line, and [the rule of its op]" in process.stdout


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")), ids=lambda page: page.stem[:3])
def test_decisions_have_the_sections_of_the_template_and_are_listed(page: Path) -> None:
    sections = re.findall(r"^## (.+)$", (page.parent / "template.md").read_text(encoding="utf-8"), re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.+)$", text, re.MULTILINE)) == set(sections)
    assert re.search(r"^# \d{3} \S.*\n\nStatus: (accepted|replaced by \d{3})", text)
    assert f"]({page.name})" in (page.parent / "README.md").read_text(encoding="utf-8")
