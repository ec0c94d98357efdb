"""Random training programs, with changes between the steps, compiled and in eager mode.

Between two steps a rate may change, a parameter may be frozen, the batch may grow, the mode may change, and weights or
optimizer state may be loaded. After each step, parameters, optimizer state, results and random numbers must equal eager
mode's.
"""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

CLASSES = 4


class LastOf(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0][:, -1]


def body(draw):
    """Return layers and a function that makes a batch of a size for them."""
    kind = draw.choice(["dense", "tokens", "pictures"])
    if kind == "dense":
        return [nn.Linear(6, 8)], lambda rng, n: gg.tensor(rng.standard_normal((n, 6)))
    if kind == "tokens":
        recurrent = draw.choice([nn.RNN, nn.GRU, nn.LSTM])(5, 8, batch_first=True)
        return [nn.Embedding(7, 5), LastOf(recurrent)], lambda rng, n: gg.tensor(rng.integers(0, 7, (n, 4)))
    pool = draw.choice([nn.MaxPool2d(2), nn.AvgPool2d(2)])
    layers = [nn.Conv2d(2, 8, 3, padding=1), pool, nn.GroupNorm(2, 8), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return layers, lambda rng, n: gg.tensor(rng.standard_normal((n, 2, 6, 6)))


class Program:
    def __init__(self, seed):
        draw = self.draw = random.Random(seed)
        gg.manual_seed(seed)
        layers, self.batch = body(draw)
        for _ in range(draw.randint(0, 2)):
            layers += [draw.choice([nn.Tanh, nn.GELU, nn.SiLU])(), nn.Linear(8, 8), nn.LayerNorm(8), nn.Dropout(0.3)]
        self.model = nn.Sequential(*layers, nn.Linear(8, CLASSES)).to(np.float64)
        parameters = list(self.model.parameters())
        groups = [{"params": parameters[:1], "lr": 0.02}, {"params": parameters[1:]}]
        decay = draw.choice([0.0, 0.01])
        self.optimizer = draw.choice(
            [
                lambda: optim.SGD(groups, lr=0.05, momentum=0.9, dampening=draw.choice([0.0, 0.3]), weight_decay=decay),
                lambda: optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True),
                lambda: optim.AdamW(groups, lr=0.01, eps=1e-3, amsgrad=draw.random() < 0.5, weight_decay=decay),
                lambda: optim.RMSprop(groups, lr=0.01, eps=1e-3, centered=draw.random() < 0.5),
            ]
        )()
        self.schedule = optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5) if draw.random() < 0.4 else None
        self.average = optim.EMA(self.model, decay=0.9) if draw.random() < 0.3 else None
        self.clip, self.parts = draw.choice([None, 0.5]), draw.choice([1, 1, 2])
        self.scale, self.size = 1.0, draw.choice([4, 6])
        events = (None, "rate", "freeze", "thaw", "size", "mode", "weights", "state", "scale", "gradients")
        self.events = [None, *draw.choices(events, k=4)]

    def step(self, x, labels):
        self.optimizer.zero_grad()
        total, half = 0.0, x.shape[0] // self.parts
        for at in range(self.parts):
            part = slice(at * half, (at + 1) * half)
            logits = self.model(x[part])
            loss = F.cross_entropy(logits, labels[part]) * self.scale / self.parts
            loss.backward()
            total = total + loss.detach()
        norm = None if self.clip is None else nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        if self.average is not None:
            self.average.update()
        if self.schedule is not None:
            self.schedule.step()
        return {"loss": total, "norm": norm, "logits": logits.detach(), "last": self.model[-1].bias * 1}

    def happen(self, event):
        parameters = list(self.model.parameters())
        match event:
            case "rate":
                self.optimizer.param_groups[0]["lr"] *= 0.3
            case "freeze":
                parameters[len(parameters) // 2].requires_grad_(False)
            case "thaw":
                self.model.requires_grad_(True)
            case "size":
                self.size += 2
            case "mode":
                self.model.train(not self.model.training)
            case "weights":
                self.model.load_state_dict({k: v.detach() * 0.9 for k, v in self.model.state_dict().items()})
            case "state":
                self.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
            case "scale":
                self.scale = 2.0
            case "gradients":
                self.model.zero_grad()

    def look(self, result):
        found = {name: np.array(value.array) for name, value in self.model.named_parameters()}
        for at, parameter in enumerate(self.model.parameters()):
            found[f"gradient {at}"] = None if parameter.grad is None else np.array(parameter.grad.array)
            for name, value in self.optimizer.state.get(parameter, {}).items():
                found[f"{name} {at}"] = np.array(value.array)
        found |= {name: None if value is None else np.array(value.array) for name, value in result.items()}
        return found, gg.default_generator.get_state()


def history(seed, compiled):
    program = Program(seed)
    rng, step = np.random.default_rng(seed), compiled(program.step)
    found = []
    for event in program.events:
        program.happen(event)
        labels = gg.tensor(rng.integers(0, CLASSES, program.size))
        found.append(program.look(step(program.batch(rng, program.size), labels)))
    return found, program.events


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_is_that_of_eager_mode(seed):
    options = ({"backend": "numpy"}, {"backend": "llvm", "threads": 1}, {"backend": "llvm", "threads": 2})[seed % 3]
    wanted, events = history(seed, lambda step: step)
    found, _ = history(seed, lambda step: gg.compile(step, **options))
    for number, ((mine, stream), (eager, eager_stream)) in enumerate(zip(found, wanted, strict=True)):
        assert stream == eager_stream
        assert mine.keys() == eager.keys()
        for name, value in eager.items():
            about = f"{name} in step {number}, {events}, {options}"
            assert (mine[name] is None) == (value is None), about
            if value is not None:
                np.testing.assert_allclose(mine[name], value, rtol=1e-7, atol=1e-10, err_msg=about)
