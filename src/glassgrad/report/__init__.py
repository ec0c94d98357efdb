"""Pictures and texts from records of `glassgrad.doctor`; this package only draws, each file on its first use."""

from __future__ import annotations

from glassgrad._families import serve

__getattr__, __dir__ = serve(__name__, __path__)
