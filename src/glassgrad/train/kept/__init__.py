"""Files of a run: checkpoints, metrics, weights and the run directory.

`rundir.py` is the directory, `checkpoint.py` one checkpoint file and `keeping.py` a user's own, `metrics.py` the log
and `loggers.py` other loggers, `weights.py` the model, `samples.py` its outputs, `sessions.py` the processes of the
run, `randomness.py` the random state.
"""
