"""Experiments with a training whose symptom has no known cause: `glassgrad doctor --deeper`, `examine(deeper=True)`.

In go a model, an optimizer and batches whose loss can be computed again. Out come `Outcome`s in words.

| question | file |
|---|---|
| How is the loss of a batch computed again that a script computed? | `taken.py` |
| How are batches taken from a watched script? | `taking.py` |
| Which experiments are there, and what do their results mean? | `experiments.py` |
| Which two belong to a symptom? | `choice.py` |
"""
