"""The judges of the exercises, one module each, with the name of its starter. `STEPS` holds the steps in order."""
