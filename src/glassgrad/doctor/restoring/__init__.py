"""Code that runs outside the training: all of its effects are undone.

In: a model, or a step and its arguments. Out: a block that restores weights, statistics, gradients and random states at
its end.

`set_aside.py` restores one model of either library; `step_aside.py` finds and restores all that a step can reach.
"""
