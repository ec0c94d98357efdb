"""Output for users: printed tensors, warnings, messages, NaN and infinity."""
