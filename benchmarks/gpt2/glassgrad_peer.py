"""GPT-2 small in glassgrad, its head tied to its embedding; the whole step is compiled."""

from __future__ import annotations

import itertools

import glassgrad as gg
from benchmarks.gpt2 import problem as p
from glassgrad import optim
from glassgrad.models import GPT
from glassgrad.nn import functional as F


def build(mode):
    model = GPT(p.TOKENS, p.CONTEXT, p.WIDTH, p.HEADS, p.LAYERS)
    model.head.weight = model.tokens.weight
    with gg.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(gg.from_numpy(p.weight(name, parameter.shape)))
    optimizer = optim.AdamW(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON, weight_decay=p.DECAY)

    def step(tokens, targets):
        loss = F.cross_entropy(model(tokens).view(-1, p.TOKENS), targets.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    compiled = gg.compile(step, keep_grads=False, memory=mode or None)
    data = itertools.cycle([tuple(map(gg.tensor, batch)) for batch in p.batches()])

    def run(count):
        for _ in range(count):
            loss = compiled(*next(data))
        return loss.item()

    run.stats = lambda: compiled.stats
    return run
