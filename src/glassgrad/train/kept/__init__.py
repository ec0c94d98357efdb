"""What a run leaves on disk: checkpoints, metrics, weights and the run directory."""
