"""Windows that show nothing."""

from typing import Any


class Visdom:
    """Takes every call."""

    def __init__(self, *_arguments: Any, **_options: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_options: "window"
