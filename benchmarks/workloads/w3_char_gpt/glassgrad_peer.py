"""W3 in glassgrad, with the model of `glassgrad train text`; mode `eager`, or the emitter of a compiled step."""

from __future__ import annotations

import glassgrad as gg
from benchmarks.workloads._glassgrad import prepared, stepper
from benchmarks.workloads.w3_char_gpt import problem as p
from glassgrad import optim
from glassgrad.models import GPT
from glassgrad.nn import functional as F


def loss_fn(logits, targets):
    """Mean over all places of all sequences."""
    return F.cross_entropy(logits.view(-1, p.VOCABULARY), targets.view(-1))


def parts():
    """Model, optimizer and loss."""
    model = GPT(p.VOCABULARY, p.CONTEXT, p.WIDTH, p.HEADS, p.LAYERS)
    model.load_state_dict({name: gg.tensor(value) for name, value in p.initial().items()})
    optimizer = optim.AdamW(model.parameters(), lr=p.RATE, betas=p.BETAS, eps=p.EPSILON, weight_decay=p.DECAY)

    return model, optimizer, loss_fn


def build(mode):
    model, optimizer, loss_fn = parts()

    def step(tokens, targets):
        loss = loss_fn(model(tokens), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return stepper(step, mode, prepared(p.batches()))
