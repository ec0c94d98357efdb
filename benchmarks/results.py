"""Tables, the sections of RESULTS.md, and the recorded numbers that the picture is drawn from."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, quiet
from benchmarks.harness import Outcome
from benchmarks.limits import measured
from benchmarks.machine import facts
from benchmarks.workload import Bar, Workload
from benchmarks.workloads import WORKLOADS

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "RESULTS.md"
RECORDED = FOLDER / "recorded"
README = FOLDER.parent / "README.md"
RIVALS = ("PyTorch eager", "torch.compile", "JAX jit")
HEADER = """# Measured

Every table was written by the command above it, which ran all its peers in turn on one machine, from
the same weights and batches, after checking that their losses agree. Times move from machine to machine and from hour
to hour; the ratios within a table are what counts. A section has a part for each processor that it was measured on,
taken on the day that it names: another processor's part may speak of an earlier state of the code.
"First step" includes importing the library and compiling, with nothing of ours on the disk from before.
"""


def duration(seconds: float) -> str:
    """Seconds in the unit that fits."""
    if not math.isfinite(seconds):
        return "–"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}" if seconds < 100 * factor else f"{seconds / factor:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def number(value: float, form: str) -> str:
    """A number, or a dash where there is none."""
    return format(value, form) if math.isfinite(value) else "–"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that lines up as plain text too; the first column to the left, the rest to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cells[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)),
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(head), line(rule), *(line(row) for row in rows)])


def trouble_line(outcome: Outcome) -> str:
    """The last line of what went wrong: enough for a table."""
    return outcome.trouble.strip().splitlines()[-1][:200]


def outcome_table(outcomes: Sequence[Outcome]) -> str:
    """One line a peer, the quickest first; times as multiples of the quickest peer's."""
    timed = sorted((outcome for outcome in outcomes if outcome.rounds), key=lambda outcome: outcome.median)
    rows = [
        [
            outcome.name,
            duration(outcome.median),
            duration(outcome.best),
            number(outcome.median / timed[0].median, ".2f"),
            duration(outcome.first_step),
            number(outcome.megabytes, ".0f"),
        ]
        for outcome in timed
    ]
    table = markdown_table(["peer", "median step", "best", "ratio", "first step", "peak MB"], rows) if rows else ""
    left_out = [f"- {outcome.name}: {trouble_line(outcome)}" for outcome in outcomes if outcome.trouble]
    return "\n\n".join(part for part in (table, "\n".join(left_out)) if part)


def is_busy(outcomes: Sequence[Outcome]) -> bool:
    """Whether others used the machine while any of these was timed."""
    return any(quiet.verdict(outcome.others) for outcome in outcomes)


def judge(bar: Bar, outcomes: Sequence[Outcome]) -> str:
    """A bar and what was measured against it."""
    medians = {outcome.name: outcome.median for outcome in outcomes if outcome.rounds}
    ratio = bar.ratio(medians)
    if ratio is None:
        return f"- {bar}: not measured"
    verdict = "but the machine was busy" if is_busy(outcomes) else "met" if ratio <= bar.limit else "missed"
    absent = [name for name in bar.theirs if name not in medians]
    if absent and verdict == "met":  # a peer that did not run may be faster
        verdict = f"met by what ran; {', '.join(absent)} not measured"
    return f"- {bar}: {ratio:.3g}, {verdict}"


def limit_line(outcome: Outcome) -> str:
    """How near a peer that counts its work comes to what the machine can do."""
    work, limits = outcome.work or {}, measured()
    least = limits.seconds(work["flops"], work["bytes"])
    return (
        f"- {outcome.name}: {work['flops'] / 1e6:.3g} Mflop and {work['bytes'] / 1e6:.3g} MB a step; at"
        f" {limits.text(work['bytes'])} that takes {duration(least)} at least, {least / outcome.median:.0%} of the time"
        " taken"
    )


def compile_line(outcome: Outcome) -> str:
    """How long a peer that keeps machine code on the disk takes for its first step, there and in the next process."""
    return (
        f"- {outcome.name}: the first step takes {duration(outcome.compiling)} where it is traced and compiled,"
        f" {duration(outcome.compiled)} in a second process"
    )


def section(workload: Workload, outcomes: Sequence[Outcome], command: str) -> str:
    """The text of a workload's section."""
    return f"Command: `{command}`\n\n{measured_text(workload, outcomes)}\n\n{machine_lines()}"


def measured_text(workload: Workload, outcomes: Sequence[Outcome]) -> str:
    """What a section says between its command and its machine."""
    agreed = [outcome for outcome in outcomes if outcome.rounds]
    loss = agreed[0].losses[-1] if agreed else math.nan
    parts = [
        quiet.verdict(max((outcome.others for outcome in agreed), default=math.nan)),
        outcome_table(outcomes),
        "\n".join(judge(bar, outcomes) for bar in workload.bars),
        f"Losses of the timed peers agreed over the first {workload.check_steps} steps within {workload.tolerance:g}"
        f" (loss after them: {loss:.4f})."
        if agreed
        else "",
        "\n".join(compile_line(outcome) for outcome in agreed if math.isfinite(outcome.compiled)),
        "\n".join(limit_line(outcome) for outcome in agreed if outcome.work),
    ]
    return "\n\n".join(part for part in parts if part)


def machine_lines() -> str:
    """The machine below a table, in one paragraph."""
    return "; ".join(f"{name}: {value}" for name, value in facts().items()) + "."


def write_section(key: str, title: str, text: str, path: Path = RESULTS, processor: str | None = None) -> None:
    """Put a section into RESULTS.md in place of what this processor had there; other processors' is kept."""
    processor = processor or machine.processor()
    whole = path.read_text(encoding="utf-8") if path.exists() else HEADER
    name = f"{key} on {processor}"
    inner = _put(_get(whole, key), name, f"### {processor}\n\n{text}")
    path.write_text(_put(whole, key, f"## {title}\n\n{inner}"), encoding="utf-8")


def _marks(key: str) -> tuple[str, str]:
    return f"<!-- begin {key} -->", f"<!-- end {key} -->"


def _get(whole: str, key: str) -> str:
    """Return the parts of a section, one for each processor, as they stand."""
    begin, end = _marks(key)
    if begin not in whole:
        return ""
    section = whole.split(begin, 1)[1].split(end, 1)[0]
    return "<!-- begin" + section.split("<!-- begin", 1)[1].rstrip() if "<!-- begin" in section else ""


def _put(whole: str, key: str, text: str) -> str:
    """Return a text with a block replaced, or at the end where there was none; the rest of it is kept."""
    begin, end = _marks(key)
    block = f"{begin}\n{text.rstrip()}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(whole):
        return pattern.sub(lambda _: block, whole)
    return f"{whole.rstrip()}\n\n{block}\n".lstrip()


def record(key: str, data: Mapping[str, Any]) -> None:
    """Keep the raw numbers for the picture and for anyone who wants another statistic, in a folder a processor."""
    folder = RECORDED / machine.processor().replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**data, "machine": facts()}, indent=1)
    (folder / f"{key}.json").write_text(text + "\n", encoding="utf-8")


def record_outcomes(workload: Workload, outcomes: Sequence[Outcome]) -> None:
    """The rounds of every timed peer of a workload."""
    rounds = {outcome.name: outcome.rounds for outcome in outcomes if outcome.rounds}
    record(workload.key, {"title": workload.title, "seconds_per_step": rounds})


def recorded_medians(folder: Path = RECORDED) -> dict[str, dict[str, dict[str, float]]]:
    """For each workload, the median seconds per step of each peer, by processor."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for key in WORKLOADS:
        for path in sorted(folder.glob(f"*/{key}.json")):
            rounds = json.loads(path.read_text(encoding="utf-8"))["seconds_per_step"]
            medians = {name: statistics.median(times) for name, times in rounds.items()}
            if any(name.startswith("glassgrad") for name in medians):
                found.setdefault(key, {})[path.parent.name.replace("-", " ")] = medians
    return found


def bars_table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Every bar of every workload and the ratios measured against it, a column for each processor."""
    processors = sorted({processor for medians in found.values() for processor in medians})
    rows = [
        [f"{key}: {bar}", *(_against(bar, found[key].get(processor, {})) for processor in processors)]
        for key in found
        for bar in WORKLOADS[key].bars
    ]
    return markdown_table(["bar", *processors], rows)


def _against(bar: Bar, medians: Mapping[str, float]) -> str:
    ratio = bar.ratio(medians)
    return "–" if ratio is None else f"{ratio:.3g}{'' if ratio <= bar.limit else ' (missed)'}"


def write_bars(path: Path = RESULTS, folder: Path = RECORDED) -> None:
    """Put the table of bars into RESULTS.md."""
    text = "Each cell is the last measurement on that processor; a peer that did not run then is not in it."
    table = bars_table(recorded_medians(folder))
    whole = path.read_text(encoding="utf-8") if path.exists() else HEADER
    path.write_text(_put(whole, "bars", f"## Bars\n\n{text}\n\n{table}"), encoding="utf-8")


def summary_table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """How many times our compiled step's time each rival takes: the least and the most over the processors."""
    rows = [
        [WORKLOADS[key].title, *(_against_us(name, found[key]) for name in RIVALS)]
        for key in found
        if any(name in medians for medians in found[key].values() for name in RIVALS)
    ]
    return markdown_table(["a training step", *RIVALS], rows)


def spread(ratios: Sequence[float]) -> str:
    """The least and the most of them."""
    least, most = (f"{pick(ratios):,.3g}" if pick(ratios) < 1_000 else f"{pick(ratios):,.0f}" for pick in (min, max))
    return least if least == most else f"{least} to {most}"


def _against_us(rival: str, by_processor: Mapping[str, Mapping[str, float]]) -> str:
    ours = "glassgrad compiled"
    ratios = [medians[rival] / medians[ours] for medians in by_processor.values() if {rival, ours} <= medians.keys()]
    return spread(ratios) if ratios else "–"


def write_summary(path: Path = README, folder: Path = RECORDED) -> None:
    """Put the summary into the README."""
    found = recorded_medians(folder)
    processors = ", ".join(sorted({processor for medians in found.values() for processor in medians}))
    text = (
        "The time of PyTorch and JAX, in multiples of glassgrad's compiled step: above 1, glassgrad is faster. From the"
        f"\nprocessor where it is least to the one where it is most ({processors};\ntwo cores each):"
    )
    block = f"{text}\n\n{summary_table(found)}"
    path.write_text(_put(path.read_text(encoding="utf-8"), "speed", block), encoding="utf-8")
