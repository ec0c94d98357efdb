"""Data files that programs expect beside them and that their repositories lack: stand-ins in the same form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

KINDS = ("Case_Based", "Genetic_Algorithms", "Neural_Networks", "Probabilistic_Methods", "Rule_Learning", "Theory")
WORDS = ("the", "small", "old", "ship", "sea", "wind", "came", "over", "under", "long", "night", "and", "then", "home")


def cora(file: Path) -> None:
    """Write papers with words and kinds, for the citations that lie beside in `cora.cites`."""
    rng = np.random.default_rng(0)
    pairs = [line.split() for line in file.with_name("cora.cites").read_text(encoding="utf-8").splitlines() if line]
    papers = sorted({paper for pair in pairs for paper in pair})
    kinds = dict(zip(papers, rng.integers(len(KINDS) + 1, size=len(papers)).tolist(), strict=True))
    for _ in range(5):  # neighbours are alike
        for one, other in pairs:
            kinds[other] = kinds[one] if rng.random() < 0.5 else kinds[other]
    chances = rng.uniform(0, 0.025, (len(KINDS) + 1, 1433))
    lines = []
    for paper in papers:
        words = (rng.random(1433) < chances[kinds[paper]]).astype(int)
        lines.append("\t".join([paper, *map(str, words), [*KINDS, "Reinforcement_Learning"][kinds[paper]]]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def text(file: Path) -> None:
    """Write sentences of few words."""
    rng = np.random.default_rng(0)
    lines = [" ".join(WORDS[at] for at in rng.integers(len(WORDS), size=rng.integers(4, 12))) for _ in range(2000)]
    file.write_text("\n".join(f"{line} ." for line in lines) + "\n", encoding="utf-8")


MAKERS: dict[str, Callable[[Path], None]] = {"cora": cora, "text": text}
