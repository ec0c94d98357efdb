"""Tables, the sections of RESULTS.md, and the recorded numbers for the picture."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import isa, machine, quiet
from benchmarks.harness import Outcome
from benchmarks.limits import measured
from benchmarks.machine import facts
from benchmarks.workload import Bar, FirstStep, Times, Workload
from benchmarks.workloads import WORKLOADS

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "RESULTS.md"
RECORDED = FOLDER / "recorded"
README = FOLDER.parent / "README.md"
COMPARISON = FOLDER.parent / "docs" / "when_to_use_something_else.md"
SHORT = ("w2", "w3", "w6")  # what the README shows: matrix products, attention, convolutions
RIVALS = ("PyTorch eager", "torch.compile", "JAX jit")
HEADER = """# Measured

The command above each table ran all peers in turn on one machine, from the same weights and batches, and checked that
their losses agree. Times differ between machines and hours; compare the ratios within a table. A section has one part
for each processor, with the date of the measurement: parts for other processors may describe earlier code.
"First step" includes the import of the library and the compilation, with an empty cache on the disk.
"""


def duration(seconds: float) -> str:
    """Return seconds in a suitable unit."""
    if not math.isfinite(seconds):
        return "–"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}" if seconds < 100 * factor else f"{seconds / factor:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def number(value: float, form: str) -> str:
    """Return a number as text, or a dash if there is none."""
    return format(value, form) if math.isfinite(value) else "–"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table that is also aligned as plain text: the first column to the left, the others to the right."""
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
    """Return the last line of an error, which is enough for a table."""
    return outcome.trouble.strip().splitlines()[-1][:200]


def outcome_table(outcomes: Sequence[Outcome]) -> str:
    """Return one line per peer, the fastest first; times are multiples of the fastest peer's."""
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
    """Return whether others used the machine during one of these timings."""
    return any(quiet.verdict(outcome.others) for outcome in outcomes)


def times_of(outcomes: Sequence[Outcome]) -> Times:
    """Return the numbers of the timed peers that bars are checked against."""
    timed = [outcome for outcome in outcomes if outcome.rounds]
    first_steps = {outcome.name: outcome.compiling for outcome in timed if math.isfinite(outcome.compiling)}
    return Times({outcome.name: outcome.median for outcome in timed}, first_steps)


def judge(bar: Bar | FirstStep, outcomes: Sequence[Outcome], processor: str | None = None) -> str:
    """Return a bar and the measured value."""
    times = times_of(outcomes)
    found = bar.measured(times)
    if found is None:
        return f"- {bar}: not measured"
    met = found <= bar.limit_on(processor or machine.processor())
    verdict = "but the machine was busy" if is_busy(outcomes) else "met" if met else "missed"
    if verdict == "met" and (absent := bar.absent(times)):
        verdict = f"met by what ran; {', '.join(absent)} not measured"
    return f"- {bar}: {found:.3g}, {verdict}"


def limit_line(outcome: Outcome) -> str:
    """Return how close a peer that counts its work comes to the limits of the machine."""
    work, limits = outcome.work or {}, measured()
    least = limits.seconds(work["flops"], work["bytes"])
    return (
        f"- {outcome.name}: {work['flops'] / 1e6:.3g} Mflop and {work['bytes'] / 1e6:.3g} MB a step; at"
        f" {limits.text(work['bytes'])} that takes {duration(least)} at least, {least / outcome.median:.0%} of the time"
        " taken"
    )


def compile_line(outcome: Outcome) -> str:
    """Return the time of the first step of a peer that keeps machine code on disk, in a first and a second process."""
    return (
        f"- {outcome.name}: the first step takes {duration(outcome.compiling)} where it is traced and compiled,"
        f" {duration(outcome.compiled)} in a second process"
    )


def section(workload: Workload, outcomes: Sequence[Outcome], command: str) -> str:
    """The text of a workload's section."""
    return f"Command: `{command}`\n\n{measured_text(workload, outcomes)}\n\n{machine_lines()}"


def measured_text(workload: Workload, outcomes: Sequence[Outcome]) -> str:
    """Return the text of a section between its command and its machine."""
    agreed = [outcome for outcome in outcomes if outcome.rounds]
    loss = agreed[0].losses[-1] if agreed else math.nan
    parts = [
        quiet.verdict(max((outcome.others for outcome in agreed), default=math.nan)),
        "\n".join(filter(None, (isa.verdict(outcome.name, outcome.excess) for outcome in agreed))),
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
    """Return the description of the machine below a table, in one paragraph."""
    return "; ".join(f"{name}: {value}" for name, value in facts().items()) + "."


def write_section(key: str, title: str, text: str, path: Path = RESULTS, processor: str | None = None) -> None:
    """Put a section into RESULTS.md and replace this processor's previous one; keep those of other processors."""
    processor = processor or machine.processor()
    whole = path.read_text(encoding="utf-8") if path.exists() else HEADER
    name = f"{key} on {processor}"
    inner = _put(_get(whole, key), name, f"### {processor}\n\n{text}")
    path.write_text(_put(whole, key, f"## {title}\n\n{inner}"), encoding="utf-8")


def _marks(key: str) -> tuple[str, str]:
    return f"<!-- begin {key} -->", f"<!-- end {key} -->"


def _get(whole: str, key: str) -> str:
    """Return the existing parts of a section, one for each processor."""
    begin, end = _marks(key)
    if begin not in whole:
        return ""
    section = whole.split(begin, 1)[1].split(end, 1)[0]
    return "<!-- begin" + section.split("<!-- begin", 1)[1].rstrip() if "<!-- begin" in section else ""


def _put(whole: str, key: str, text: str) -> str:
    """Return a text with a block replaced, or appended if there was none; the rest is unchanged."""
    begin, end = _marks(key)
    block = f"{begin}\n{text.rstrip()}\n{end}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if pattern.search(whole):
        return pattern.sub(lambda _: block, whole)
    return f"{whole.rstrip()}\n\n{block}\n".lstrip()


def record(key: str, data: Mapping[str, Any]) -> None:
    """Store the raw numbers for the picture and for other statistics, in one folder per processor."""
    folder = RECORDED / machine.processor().replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**data, "machine": facts()}, indent=1)
    (folder / f"{key}.json").write_text(text + "\n", encoding="utf-8")


def record_outcomes(workload: Workload, outcomes: Sequence[Outcome]) -> None:
    """The rounds of every timed peer of a workload."""
    rounds = {outcome.name: outcome.rounds for outcome in outcomes if outcome.rounds}
    first_steps = times_of(outcomes).first_steps
    record(workload.key, {"title": workload.title, "seconds_per_step": rounds, "first_steps": first_steps})


def recorded_times(folder: Path = RECORDED) -> dict[str, dict[str, Times]]:
    """Return the measurements of the peers of each workload, by processor."""
    found: dict[str, dict[str, Times]] = {}
    for key in WORKLOADS:
        for path in sorted(folder.glob(f"*/{key}.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            medians = {name: statistics.median(times) for name, times in data["seconds_per_step"].items()}
            if any(name.startswith("glassgrad") for name in medians):
                times = Times(medians, data.get("first_steps", {}))  # which early measurements did not keep
                found.setdefault(key, {})[path.parent.name.replace("-", " ")] = times
    return found


def recorded_medians(folder: Path = RECORDED) -> dict[str, dict[str, Mapping[str, float]]]:
    """Return the median seconds per step of each peer of each workload, by processor."""
    by_workload = recorded_times(folder).items()
    return {key: {name: times.steps for name, times in processors.items()} for key, processors in by_workload}


def bars_table(found: Mapping[str, Mapping[str, Times]]) -> str:
    """Return every bar of every workload with its measured values, one column per processor."""
    processors = sorted({processor for times in found.values() for processor in times})
    rows = [
        [f"{key}: {bar}", *(_against(bar, found[key].get(processor), processor) for processor in processors)]
        for key in found
        for bar in WORKLOADS[key].bars
    ]
    return markdown_table(["bar", *processors], rows)


def _against(bar: Bar | FirstStep, times: Times | None, processor: str) -> str:
    value = bar.measured(times) if times else None
    return "–" if value is None else f"{value:.3g}{'' if value <= bar.limit_on(processor) else ' (missed)'}"


def write_bars(path: Path = RESULTS, folder: Path = RECORDED) -> None:
    """Put the table of bars into RESULTS.md."""
    text = "Each cell is the last measurement on that processor; a peer that did not run then is not in it."
    table = bars_table(recorded_times(folder))
    whole = path.read_text(encoding="utf-8") if path.exists() else HEADER
    path.write_text(_put(whole, "bars", f"## Bars\n\n{text}\n\n{table}"), encoding="utf-8")


def summary_table(found: Mapping[str, Mapping[str, Mapping[str, float]]], keys: Sequence[str] = ()) -> str:
    """Return each rival's time as a multiple of our compiled step's: smallest and largest over the processors."""
    rows = [[WORKLOADS[key].title, *(_band(name, found, [key]) for name in RIVALS)] for key in keys or compared(found)]
    return markdown_table(["a training step", *RIVALS], rows)


def compared(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    """Return the workloads that a rival ran."""
    return [key for key, processors in found.items() if any(_ratios(name, processors) for name in RIVALS)]


def spread(ratios: Sequence[float]) -> str:
    """Return the smallest and the largest of them."""
    least, most = (f"{pick(ratios):,.3g}" if pick(ratios) < 1_000 else f"{pick(ratios):,.0f}" for pick in (min, max))
    return least if least == most else f"{least} to {most}"


def _ratios(rival: str, by_processor: Mapping[str, Mapping[str, float]]) -> list[float]:
    ours = "glassgrad compiled"
    return [medians[rival] / medians[ours] for medians in by_processor.values() if {rival, ours} <= medians.keys()]


def _band(rival: str, found: Mapping[str, Mapping[str, Mapping[str, float]]], keys: Sequence[str]) -> str:
    ratios = [ratio for key in keys for ratio in _ratios(rival, found[key])]
    return spread(ratios) if ratios else "–"


def write_summary(readme: Path = README, page: Path = COMPARISON, folder: Path = RECORDED) -> None:
    """Put the whole summary into the page that compares libraries, and the rows of `SHORT` into the README."""
    found = recorded_medians(folder)
    processors = sorted({processor for medians in found.values() for processor in medians})
    meaning = (
        "The time of PyTorch and JAX as a multiple of glassgrad's compiled step: above 1, glassgrad is faster.\n"
        "A band goes from the processor with the smallest ratio to the one with the largest, of"
        f" {len(processors)} kinds\nfrom AVX2 to AMX, two cores each"
    )
    keys = compared(found)
    eager, jax = _band("PyTorch eager", found, keys), _band("JAX jit", found, keys)
    bands = f"Over all {len(keys)} measured steps the band is {eager} for PyTorch's eager mode and {jax} for JAX"
    short = (
        f"{meaning}:\n\n{summary_table(found, SHORT)}\n\n{bands}: [the whole\n"
        "table](docs/when_to_use_something_else.md#speed), [every figure with its date and"
        " command](benchmarks/RESULTS.md)."
    )
    whole = f"{bands}.\n\n{meaning}\n({', '.join(processors)}).\n\n{summary_table(found)}"
    for path, block in ((readme, short), (page, whole)):
        path.write_text(_put(path.read_text(encoding="utf-8"), "speed", block), encoding="utf-8")
