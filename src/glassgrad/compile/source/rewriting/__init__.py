"""Shorter programs: lines that repeat become loops, and groups of steps become closed-form gradients."""
