"""Optimizers and schedules with PyTorch's names; each file reads like its paper and is loaded on first use."""

from __future__ import annotations

from glassgrad.base.families import serve

__getattr__, __dir__ = serve(__name__, __path__, modules=("lr_scheduler", "swa_utils"), apart=("swa_utils",))
