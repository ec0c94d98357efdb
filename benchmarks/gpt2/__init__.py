"""A training step of GPT-2 small, one text of 256 tokens: time, first step, and what the process holds at most."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks import harness, results
from benchmarks.workload import Bar, Workload

TITLE = "A training step of GPT-2 small, context 256, batch 1"
MEGABYTES, FIRST = 6_000, 10.0
OURS = "glassgrad compiled"
WORKLOAD = Workload(
    key="gpt2",
    title=TITLE,
    package="benchmarks.gpt2",
    peers={
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        OURS: "glassgrad_peer",
        "glassgrad compiled, 100 MB": "glassgrad_peer:100 MB",
    },
    reference="PyTorch eager",
    bars=(Bar(OURS, ("PyTorch eager", "torch.compile"), 0.8),),
    check_steps=3,
    seconds=3.0,
)


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    outcomes = harness.run(WORKLOAD, rounds=rounds, threads=threads)
    text = results.measured_text(WORKLOAD, outcomes)
    verdicts = []
    for one in outcomes:
        if one.name == OURS and one.rounds:
            held = "met" if one.megabytes <= MEGABYTES else "missed"
            first = "met" if one.first_step <= FIRST else "missed"
            verdicts.append(f"- {OURS} within {MEGABYTES:,} MB: {one.megabytes:,.0f}, {held}")
            verdicts.append(f"- first step of {OURS} under {FIRST:g} s: {one.first_step:.1f}, {first}")
    return TITLE, "\n\n".join([text, "\n".join(verdicts)]), {"outcomes": [dataclasses.asdict(one) for one in outcomes]}
