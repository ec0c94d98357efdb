"""Optimizers and schedules with PyTorch's names; each file reads like its paper and is loaded on first use.

`step()` updates parameters that have gradients. `optimizer.py` is the base with groups and state; `equations.py`
defines what a rule may use, `in_place.py` compiles it, and `native_update.py` runs it as one loop. `update.py` is a
step with clipping, scaling and averages; `ema.py` and `swa_utils.py` average weights, `lr_scheduler/` changes rates,
and `zero_redundancy.py` distributes state over ranks.
"""

from __future__ import annotations

from glassgrad.base.families import serve

__getattr__, __dir__ = serve(__name__, __path__, modules=("lr_scheduler", "swa_utils"), apart=("swa_utils",))
