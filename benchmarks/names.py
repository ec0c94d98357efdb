"""Measure the main job: `glassgrad train names` from beginning to end, and its gradients beside PyTorch's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import chunked, results

TITLE = "The names model, trained by `glassgrad train names`"
PUBLISHED = 2.12
TOLERANCES = {"float32": 1e-6, "float64": 1e-12}
SEEDS = (0, 1, 2)


def word_list() -> Path | None:
    """Return the list of 32,033 names of the published run if it is available; None selects the list we ship."""
    folders = (os.environ.get("GLASSGRAD_DATA", ""), str(Path(__file__).parents[2] / "shared" / "data"))
    found = (Path(folder) / "names.txt" for folder in folders if folder)
    return next((path for path in found if path.is_file()), None)


def train(words: Path | None, seed: int) -> tuple[str, dict[str, Any]]:
    """Return the number of examples that the command reports, and the last record of its metrics."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        options = ["--seed", str(seed), "--run-dir", str(run), *(["--data", str(words)] if words else [])]
        command = [sys.executable, "-m", "glassgrad", "train", "names", *options]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        counts = re.search(r"^examples +(.*)$", said, re.MULTILINE)
        final: dict[str, Any] = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
        return counts[1] if counts else "", final


def agreement() -> list[str]:
    """Return the largest difference between a gradient of the chunked network and PyTorch's, for each dtype."""
    try:
        import torch
    except ImportError:
        return ["- gradients beside PyTorch's: PyTorch is missing"]
    import glassgrad

    lines = []
    for name, limit in TOLERANCES.items():
        ours, theirs = (chunked.gradients(library, np.dtype(name)) for library in (glassgrad, torch))
        worst = max(float(np.abs(ours[key] - theirs[key]).max()) for key in ours)
        verdict = "met" if worst <= limit else "missed"
        lines.append(
            f"- {chunked.COUNT} intermediates and {len(ours) - chunked.COUNT} parameters, {name}: gradients at most"
            f" {limit:g} from PyTorch's: {worst:.1e}, {verdict}"
        )
    return lines


def measure(threads: int | None, rounds: int) -> tuple[str, str, dict[str, Any]]:
    """Return title, text and raw numbers; threads and rounds do not change the result of a run."""
    words = word_list()
    finals, counts = {}, ""
    for seed in SEEDS:
        counts, finals[seed] = train(words, seed)
    rows = [
        [
            str(seed),
            f"{final['step']:,}",
            f"{final['train_loss']:.4f}",
            f"{final['validation_loss']:.4f}",
            f"{final['seconds']:.1f} s",
        ]
        for seed, final in finals.items()
    ]
    table = results.markdown_table(["seed", "steps", "train loss", "validation loss", "time"], rows)
    best, worst = (pick(final["validation_loss"] for final in finals.values()) for pick in (min, max))
    source = "names.txt, 32,033 names" if words else "the list that comes with glassgrad"
    lines = [f"Words: {source}; {counts}."]
    if words:
        verdict = "met" if worst <= PUBLISHED else "missed"
        lines.append(f"- validation loss at most {PUBLISHED:g}: {best:.4f} to {worst:.4f}, {verdict}")
    text = "\n\n".join([lines[0], table, "\n".join([*lines[1:], *agreement()])])
    return TITLE, text, {str(seed): final for seed, final in finals.items()}
