"""Training runs: `Trainer` for a model of one's own, and the pieces it is made of for a loop of one's own.

Names are loaded when they are first used, so that the tasks of the command line start quickly.
"""

from __future__ import annotations

from glassgrad._families import serve

__getattr__, __dir__ = serve(__name__, __path__, inner=("kept", "show"))
