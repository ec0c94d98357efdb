"""Observers of a training loop: they turn the hooks of a library into events of calls, backward passes and steps.

In: a model and its optimizers. Out: events, to the listeners of `events.py`: a watch, a guard against NaN.

`connecting.py` chooses the observer: `ours.py` for our engine (`programs.py` for compiled steps), `pytorch.py`,
`by_hand.py` for layers without hooks. `forward_watch.py`, `passes.py` and `dead_units.py` read what modules put out;
`sampling.py` decides which steps are sampled; `leftovers.py` and `loss_record.py` keep what was heard.
"""
