"""Training runs: `Trainer` for your own model, and its parts for your own loop.

A model, an optimizer and a loader go in; a run directory and a `Result` come out. `trainer.py` is the task of a user's
model, `loop.py` the loop of every run, `feed.py` its batches, `task.py` the interface between both, `config.py` and
`training_config.py` the options. The loop calls `callbacks.py` and `stopping.py` at its events, `signals.py` stops it,
`ranks.py` distributes it. The rooms: `learners/` makes one step, `kept/` writes files, `show/` shows a run.

Names are loaded when they are first used, so that the tasks of the command line start quickly.
"""

from __future__ import annotations

from glassgrad.base.families import serve

__getattr__, __dir__ = serve(__name__, __path__, inner=("kept", "show"))
