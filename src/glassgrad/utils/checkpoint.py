"""`torch.utils.checkpoint`: computing again in the backward pass what was not kept."""

from __future__ import annotations

from glassgrad.func.checkpoint import checkpoint

__all__ = ["checkpoint"]
