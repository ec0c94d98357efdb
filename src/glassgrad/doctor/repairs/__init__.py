"""Repairs of a training script: small changes of its source, each tried in a run of its own.

In goes a script. Out come changes with which its own figures become clearly better: the line, the change, and the
figures of both runs. `glassgrad doctor` looks for them where no rule names a cause.

| question | file |
|---|---|
| How is a part of a script replaced by other text? | `edits.py` |
| Which parts of a script belong to its training, and may be changed? | `zones.py` |
| Which changes are there? | `values.py`, `layers.py`, `statements.py`, in the order of `catalogue.py` |
| How well did a run do? | `figures.py` |
| How does a changed script run without harm? | `guard.py`, `trial.py` |
| Which changes are tried, and which of them count? | `search.py` |
"""
