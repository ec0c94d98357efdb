"""Files of a run: checkpoints, metrics, weights and the run directory."""
