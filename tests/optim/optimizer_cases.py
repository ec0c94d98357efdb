"""Every optimizer with its options, for the tests that compare with PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """An optimizer and its options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.options.items())})"


def cases(name: str, *options: dict[str, Any]) -> list[Case]:
    return [Case(name, {"lr": 0.03, **given}) for given in ({}, *options)]


DECAY = {"weight_decay": 0.1}
CLIMB = {"maximize": True}

OPTIMIZERS = [
    *cases("SGD", DECAY, CLIMB, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
           {"momentum": 0.9, "dampening": 0.3}),
    *cases("Adam", DECAY, CLIMB, {"amsgrad": True}, {"betas": (0.5, 0.7), "eps": 1e-3}),
    *cases("AdamW", DECAY, CLIMB, {"amsgrad": True, "weight_decay": 0.2}),
    *cases("RMSprop", DECAY, CLIMB, {"momentum": 0.9}, {"centered": True}, {"centered": True, "momentum": 0.5},
           {"alpha": 0.5, "eps": 1e-3}),
    *cases("Adagrad", DECAY, CLIMB, {"lr_decay": 0.1}, {"initial_accumulator_value": 0.5, "eps": 1e-3}),
    *cases("Adadelta", {"lr": 1.0}, DECAY, CLIMB, {"rho": 0.5, "eps": 1e-3}),
    *cases("Adamax", DECAY, CLIMB, {"betas": (0.5, 0.7), "eps": 1e-3}),
    *cases("NAdam", DECAY, CLIMB, {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"momentum_decay": 0.1}),
    *cases("RAdam", DECAY, CLIMB, {"weight_decay": 0.1, "decoupled_weight_decay": True}, {"betas": (0.5, 0.7)}),
    *cases("ASGD", DECAY, CLIMB, {"t0": 3, "lambd": 0.1}, {"alpha": 0.5, "t0": 0, "lambd": 0.01}),
    *cases("Rprop", CLIMB, {"etas": (0.3, 1.5)}, {"step_sizes": (0.01, 0.04)}),
    *cases("Adafactor", DECAY, CLIMB, {"beta2_decay": -0.3, "d": 2.0}, {"eps": (1e-2, 0.1)}),
]  # fmt: skip  # a table

LION = cases("Lion", DECAY, CLIMB, {"betas": (0.5, 0.7)})
OURS = [*LION]  # without a twin in PyTorch
MUON = cases("Muon", {"weight_decay": 0.3}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"})
# PyTorch's takes sparse gradients alone.
SPARSE = cases("SparseAdam", CLIMB, {"betas": (0.5, 0.7), "eps": 1e-3})
