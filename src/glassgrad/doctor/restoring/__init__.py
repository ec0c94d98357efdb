"""Code that runs aside from the training: everything that it changes is put back.

In: a model, or a step and its arguments. Out: a block after which weights, statistics, gradients and random states are
as before.

`set_aside.py` restores one model of either library; `step_aside.py` finds and restores all that a step can reach.
"""
