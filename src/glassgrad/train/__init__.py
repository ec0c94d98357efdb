"""Training runs: `Trainer` for your own model, and its parts for your own loop.

Names are loaded when they are first used, so that the tasks of the command line start quickly.
"""

from __future__ import annotations

from glassgrad.base.families import serve

__getattr__, __dir__ = serve(__name__, __path__, inner=("kept", "show"))
