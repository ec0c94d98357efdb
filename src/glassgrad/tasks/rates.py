"""Learning rates over the steps of a run."""

from __future__ import annotations

import math


def warm_up_and_cosine(step: int, steps: int, highest: float, final: float, warm_up: float) -> float:
    """Return the rate of a step: linear warm-up over the fraction `warm_up` of the steps, then cosine decay.

    Example:
        >>> [round(warm_up_and_cosine(step, 10, 1.0, 0.1, 0.2), 2) for step in (0, 1, 2, 6, 9)]
        [0.33, 0.67, 1.0, 0.55, 0.13]
    """
    rising = int(steps * warm_up)
    if step < rising:
        return highest * (step + 1) / (rising + 1)
    down = (step - rising) / max(steps - rising, 1)
    return final + (highest - final) * (1 + math.cos(math.pi * down)) / 2
