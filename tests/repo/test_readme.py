"""The README shows real output."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import results

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")]


OURS, COMPILED = EXAMPLES
TWIN = OURS.replace("glassgrad as torch", "torch").replace("from glassgrad", "from torch")  # as the README says
COMPARISON = ROOT / "docs" / "when_to_use_something_else.md"

# Whose figures the pages give: `make bench` on a machine of one's own may add another.
PROCESSORS = ("AMD EPYC Zen 4", "AMD EPYC Zen 5", "Intel Xeon with AMX", "Intel Xeon")


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
    assert [a == b for a, b in zip(OURS.splitlines(), TWIN.splitlines(), strict=True)].count(False) == 2
    expected, weights = losses_of(TWIN, "torch", None)
    found, _ = losses_of(OURS, "glassgrad", weights)
    assert len(found) == 100
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert found[-1] < found[0] / 3


def test_the_loop_runs_where_there_is_no_pytorch() -> None:
    process = subprocess.run([sys.executable, "-c", OURS], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert float(process.stdout) < 0.4


def block(text: str, key: str) -> str:
    """What stands between the marks of a section."""
    return text.partition(f"<!-- begin {key} -->")[2].partition(f"<!-- end {key} -->")[0]


def cells(table: str, first: str) -> list[list[str]]:
    """The further cells of every row whose first one this is."""
    rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|"))
    return [row[1:] for row in rows if row[0] == first]


def test_tables_of_speed_are_those_of_the_recorded_rounds(tmp_path: Path) -> None:
    assert results.bars_table(results.recorded_times()) in block(RESULTS, "bars")
    found = results.recorded_medians()
    assert results.summary_table(found) in block(COMPARISON.read_text(encoding="utf-8"), "speed")
    assert "AVX2" in block(README, "speed")
    pages = [tmp_path / "README.md", tmp_path / "comparison.md"]
    for page, original in zip(pages, (ROOT / "README.md", COMPARISON), strict=True):
        page.write_text(re.sub(r"\d", "0", original.read_text(encoding="utf-8")), encoding="utf-8")
    results.write_summary(*pages)
    for page, original in zip(pages, (ROOT / "README.md", COMPARISON), strict=True):
        made, there = (block(path.read_text(encoding="utf-8"), "speed") for path in (page, original))
        assert made == there, original.name


def test_the_readme_fits_two_screens() -> None:
    """Two screens of 50 lines and 110 columns, without the places of links; a row of a table is one line."""
    shown = re.sub(r"\]\([^)]*\)", "]", README).splitlines()
    assert sum(1 if line.startswith("|") else max(-(-len(line) // 110), 1) for line in shown) <= 100


@pytest.mark.parametrize("key", results.recorded_medians())
def test_medians_of_a_section_are_those_of_the_recorded_rounds(key: str) -> None:
    for processor, medians in results.recorded_medians()[key].items():
        section = block(RESULTS, f"{key} on {processor}")
        for peer, seconds in medians.items():
            assert [row[0] for row in cells(section, peer)] == [results.duration(seconds)], (processor, peer)


def within(text: str, values: Sequence[float]) -> bool:
    """Whether numbers "least to most" of a page are the bounds of those measured, to the digits that it gives."""
    bounds = [float(number) for number in text.split(" to ")]
    return bounds == pytest.approx([min(values), max(values)], rel=0.05)


def test_what_watching_costs_is_what_was_measured() -> None:
    text = " ".join((ROOT / "docs" / "doctor.md").read_text(encoding="utf-8").split())
    watched = "".join(block(RESULTS, f"doctor on {name}") for name in PROCESSORS)
    for preset in ("economy", "standard"):
        (said,) = re.findall(rf"\| `{preset}` \|[^|]*\| (-?[\d.]+ to [\d.]+) %", text)
        times = [float(row[0]) for row in cells(watched, preset)]
        assert within(said, [100 * (time - 1) for time in times]), preset
    for pattern, names in (
        (r"took ([\d.]+ to [\d.]+) microseconds on AMD", PROCESSORS[:3]),
        (r"and ([\d.]+ to [\d.]+) on an older Xeon", PROCESSORS[3:]),
    ):
        table = "".join(block(RESULTS, f"nan on {name}") for name in names)
        eager = cells(table, "MLP 784-128-10, SGD, eager") + cells(table, "nine layers of 64, Adam, eager")
        (said,) = re.findall(pattern, text)
        assert within(said, [float(row[2]) for row in eager])


def test_numpy_programs_are_as_fast_as_the_compilers_page_says() -> None:
    text = " ".join((ROOT / "docs" / "compiler.md").read_text(encoding="utf-8").split())
    found = results.recorded_medians()
    for key, pattern in (("w1", r"takes (\S+ to \S+) of its time"), ("w2", r"RMSprop takes (\S+ to \S+) times")):
        (said,) = re.findall(pattern, text)
        medians = [found[key][name] for name in PROCESSORS]
        assert within(said, [one["glassgrad compiled (NumPy)"] / one["glassgrad eager"] for one in medians]), key


def test_whole_trainings_came_out_as_the_models_page_says() -> None:
    text = " ".join((ROOT / "docs" / "models.md").read_text(encoding="utf-8").split())
    assert "differ by less than 0.01" in text
    assert "from a quarter of PyTorch's time (a GPT on names) to about as long" in text
    ratios = {}
    for name, table in re.findall(r"<!-- begin training-(\S+) -->(.*?)<!-- end", RESULTS, re.DOTALL):
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
    assert re.search(r"^# \d{3} \S.*\n\nStatus: (accepted|replaced by \d{3}|withdrawn)", text)
    assert f"]({page.name})" in (page.parent / "README.md").read_text(encoding="utf-8")
