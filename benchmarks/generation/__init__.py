"""Tokens per second of a generating GPT: ours, the same model in PyTorch with a cache, and a loop in C.

The model is that of W3, and the texts are as long as its context. Every peer draws each token from the model's
probabilities with the same numbers, so all peers have to draw the same texts. PyTorch's cache has a fixed shape and is
written at one place per step, as usual for generation with its compiler. The loop in C is compiled for this processor;
it reads only the places filled so far, and uses one thread.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks import harness, quiet, results
from benchmarks.generation import problem
from benchmarks.workload import Bar, Workload

TITLE = "Generating with a GPT of 818,176 parameters, one text at a time"
WORKLOAD = Workload(
    key="generate",
    title=TITLE,
    package="benchmarks.generation",
    peers={
        "a loop in C": "c_peer",
        "PyTorch eager": "torch_peer:eager",
        "torch.compile": "torch_peer:compile",
        "glassgrad": "glassgrad_peer",
    },
    reference="PyTorch eager",
    bars=(Bar("glassgrad", ("torch.compile",), 1 / 3), Bar("glassgrad", ("a loop in C",), 1.3)),
    tolerance=0.0,
)


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Title, text and raw numbers."""
    outcomes = harness.run(WORKLOAD, rounds=rounds, threads=threads)
    drawn = problem.TEXT - 1
    rows = [
        [one.name, f"{drawn / one.median:,.0f}", results.duration(one.median / drawn), f"{one.first_step:.1f} s"]
        for one in outcomes
        if one.rounds
    ]
    table = results.markdown_table(["peer", "tokens a second", "a token", "first text"], rows)
    troubles = [f"- {one.name}: {results.trouble_line(one)}" for one in outcomes if one.trouble]
    busy = quiet.verdict(max((one.others for one in outcomes if one.rounds), default=0.0))
    lines = [*troubles, *(results.judge(bar, outcomes) for bar in WORKLOAD.bars)]
    text = "\n\n".join([*filter(None, [busy]), table, "\n".join(lines)])
    return TITLE, text, {"outcomes": [dataclasses.asdict(one) for one in outcomes]}
