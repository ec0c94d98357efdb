"""Pass the numbers of a step to any logger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from glassgrad import errors


def hand_over(logger: Any, values: Mapping[str, float], step: int) -> None:
    """Pass named numbers to a logger by its own method.

    Raises `KindError` for an object that is not a logger.
    """
    if hasattr(logger, "add_scalar"):
        for name, value in values.items():
            logger.add_scalar(name, value, step)
    elif hasattr(logger, "log_metrics"):
        logger.log_metrics(dict(values), step)
    elif hasattr(logger, "info"):  # Python's logger also has `log`, with another meaning
        logger.info("step %d: %s", step, ", ".join(f"{name} {value:.3g}" for name, value in values.items()))
    elif hasattr(logger, "log"):
        logger.log(dict(values), step=step)
    elif hasattr(logger, "write"):
        logger.write(event="gradients", step=step, **values)
    elif callable(logger):
        for name, value in values.items():
            logger(name, value, step)
    else:
        raise errors.MONITOR_LOGGER(given=type(logger).__name__)
