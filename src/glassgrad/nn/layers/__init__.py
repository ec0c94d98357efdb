"""The layers of `glassgrad.nn`, one file for each family. `glassgrad.nn` finds them by their `__all__`."""
