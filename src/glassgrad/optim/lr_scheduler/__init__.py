"""Schedules of the learning rate with PyTorch's names, and one that warms up and then follows a cosine.

`base.py` is the base and the schedules given by a function; the other files each hold a family.
"""

from __future__ import annotations

from glassgrad.base.families import serve

_OLD_NAME = {"_LRScheduler": "glassgrad.optim.lr_scheduler.base"}

__getattr__, __dir__ = serve(__name__, __path__, elsewhere=_OLD_NAME)
