"""`torch.random`: seeds, generators and random functions, which are defined in `engine/random.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.engine.random import (
    Generator,
    bernoulli,
    default_generator,
    fork_rng,
    get_rng_state,
    get_states,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
    set_states,
)
from glassgrad.errors.missing import getter, lister
from glassgrad.ops import examples

examples.show(__name__, globals())

if not TYPE_CHECKING:
    __getattr__ = getter(__name__)

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "get_states",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
    "set_states",
]
__dir__ = lister(__name__)
