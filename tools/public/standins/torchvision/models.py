"""No models: programs import the name in passing."""
