"""The older gym over gymnasium: `reset` returns the observation and `step` four values, unless GYM_API is new."""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium import Env

from gym import spaces

NEW = os.environ.get("GYM_API") == "new"
OLDER = {"CartPole-v0": "CartPole-v1", "Pendulum-v0": "Pendulum-v1"}
STEPS = {"CartPole-v0": 200}

if not hasattr(np, "bool8"):
    vars(np)["bool8"] = np.bool_  # programs of that time use it


class Old:
    """An environment with the calls of gym before 0.26."""

    def __init__(self, inner: Any, name: str) -> None:
        self.env = inner
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    @property
    def unwrapped(self) -> Any:
        """The environment without its limit of steps."""
        return Old(self.env.unwrapped, self.name)

    @property
    def _max_episode_steps(self) -> int:
        return int(self.env.spec.max_episode_steps)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Restart from a seed."""
        self.env.reset(seed=seed)
        return [seed]

    def reset(self, **options: Any) -> Any:
        """Return the first observation."""
        return self.env.reset(**options)[0]

    def step(self, action: Any) -> Any:
        """Return the observation, the reward, whether it ended, and more."""
        observation, reward, terminated, truncated, more = self.env.step(action)
        return observation, reward, terminated or truncated, more | ({"TimeLimit.truncated": True} if truncated else {})

    def render(self, *_arguments: Any, **_options: Any) -> Any:
        """Show nothing."""
        return np.zeros((400, 600, 3), np.uint8)


def make(name: str, **options: Any) -> Any:
    """Make an environment by its name."""
    for option in ("render_mode", "autoreset", "apply_api_compatibility", "new_step_api"):
        options.pop(option, None)
    if name in STEPS:
        options.setdefault("max_episode_steps", STEPS[name])
    inner = gymnasium.make(OLDER.get(name, name), **options)
    inner.action_space.seed(0)
    return inner if NEW else Old(inner, name)


class Wrapper:
    """An environment around another."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def reset(self, **options: Any) -> Any:
        """Return the first observation."""
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """Do one step."""
        return self.env.step(action)


class ObservationWrapper(Wrapper):
    """With `observation` of every observation."""

    def reset(self, **options: Any) -> Any:
        """Return the first observation."""
        return self.observation(self.env.reset(**options))

    def step(self, action: Any) -> Any:
        """Do one step."""
        found = self.env.step(action)
        return (self.observation(found[0]), *found[1:])


class ActionWrapper(Wrapper):
    """With `action` of every action."""

    def step(self, action: Any) -> Any:
        """Do one step."""
        return self.env.step(self.action(action))


class RewardWrapper(Wrapper):
    """With `reward` of every reward."""

    def step(self, action: Any) -> Any:
        """Do one step."""
        found = self.env.step(action)
        return (found[0], self.reward(found[1]), *found[2:])


__all__ = ["ActionWrapper", "Env", "ObservationWrapper", "RewardWrapper", "Wrapper", "make", "spaces"]
__version__ = "0.26.2" if NEW else "0.21.0"
