# ruff: noqa: F403 - the lists of names are those of the families
# Written by tools/stubs.py from `__all__` of each family.
from glassgrad.optim.lr_scheduler.base import *
from glassgrad.optim.lr_scheduler.base import _LRScheduler as _LRScheduler
from glassgrad.optim.lr_scheduler.composed import *
from glassgrad.optim.lr_scheduler.cosine import *
from glassgrad.optim.lr_scheduler.cyclic import *
from glassgrad.optim.lr_scheduler.decay import *
from glassgrad.optim.lr_scheduler.plateau import *
