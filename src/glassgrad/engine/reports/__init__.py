"""What a user is shown of tensors and errors: printed tensors, warnings, messages, NaN and infinity."""
