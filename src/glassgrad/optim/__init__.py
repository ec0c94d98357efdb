"""Optimizers with PyTorch's names; each file reads like its paper."""

from glassgrad.optim.adam import Adam, AdamW
from glassgrad.optim.optimizer import Optimizer
from glassgrad.optim.rmsprop import RMSprop
from glassgrad.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]
