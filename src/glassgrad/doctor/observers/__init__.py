"""Observers of a training loop: they turn a library's hooks into events: calls, backward passes and steps.

In: a model and its optimizers. Out: events for the listeners of `events.py`, such as a watch or a guard against NaN.

`connecting.py` chooses the observer: `ours.py` for our engine (`programs.py` for compiled steps), `pytorch.py`,
`by_hand.py` for layers without hooks. `forward_watch.py`, `passes.py` and `dead_units.py` read outputs of modules;
`sampling.py` decides which steps are sampled; `leftovers.py` and `loss_record.py` store used gradients and losses.
`calls/` follows functions that have no hook, such as clipping, schedules and gradient scalers.
"""
