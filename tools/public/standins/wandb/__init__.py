"""Runs that are logged nowhere."""

from typing import Any


class Anything(dict[str, Any]):
    """A dictionary that takes every call."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, _nothing)


def _nothing(*_arguments: Any, **_options: Any) -> Any:
    return Anything()


run = Anything()
config = Anything()


def init(*_arguments: Any, **options: Any) -> Any:
    """Start a run."""
    given = options.get("config") or {}
    config.update(given if isinstance(given, dict) else vars(given))
    run["config"] = config
    return run


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _nothing
