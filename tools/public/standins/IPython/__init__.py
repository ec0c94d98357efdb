"""What notebooks ask of their host."""

from typing import Any

from IPython import display


class Shell:
    """Takes every call, and is none."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_options: None


def get_ipython() -> Shell:
    """Return the host."""
    return Shell()


__all__ = ["display", "get_ipython"]
version_info = (9, 0, 0)
