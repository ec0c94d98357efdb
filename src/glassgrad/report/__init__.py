"""Pictures and texts from records of `glassgrad.doctor`. This package only draws; each file is loaded on first use."""

from __future__ import annotations

from glassgrad.base.families import serve

_CHECK_UP = "glassgrad.doctor.debugging"

__getattr__, __dir__ = serve(__name__, __path__, elsewhere={"check_up_lines": _CHECK_UP, "debug_training": _CHECK_UP})
