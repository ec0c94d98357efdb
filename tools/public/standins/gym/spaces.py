"""Spaces of gymnasium."""

from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

__all__ = ["Box", "Dict", "Discrete", "MultiBinary", "MultiDiscrete", "Tuple"]
