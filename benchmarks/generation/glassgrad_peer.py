"""Our GPT, with the loop behind `generate`, which here gets the random numbers as an argument."""

from __future__ import annotations

import numpy as np

import glassgrad as gg
from benchmarks.generation import problem as p
from glassgrad.data.generate import Sampling
from glassgrad.models import GPT
from glassgrad.models.decoding import draw


def build(mode):
    model = GPT(p.TOKENS, p.CONTEXT, p.WIDTH, p.HEADS, p.LAYERS)
    model.load_state_dict({name: gg.tensor(value) for name, value in p.initial().items()})
    sampling, done = Sampling(p.TEMPERATURE), 0

    def run(count):
        nonlocal done
        for _ in range(count):
            deciding, at = p.chances(done)[None], 0

            def chances(wanted):
                nonlocal at
                at += wanted
                return deciding[:, at - wanted : at]  # noqa: B023 -- called in this turn

            start = np.array([[p.prompt(done)]])
            text = np.concatenate([start, *draw(model, start, p.TEXT - 1, sampling, chances)], axis=1)[0]
            done += 1
        return p.checksum(text)

    return run
