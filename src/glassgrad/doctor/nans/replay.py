"""The common part of replays in both libraries: options, the finding, and the tracking of modules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from glassgrad.doctor import library
from glassgrad.doctor.facts import Finding
from glassgrad.doctor.library import Args, Handle, Module
from glassgrad.engine.reports.nonfinite import ALLOWED


class Replay:
    """Replays a step and keeps the first finding.

    Args:
        model: gives the modules their names.
        inf: look for infinities too.
        allow: names of ops and modules whose NaN and infinities are intended.

    Attributes:
        finding: the first place where a NaN appears, None if there is none.
    """

    def __init__(self, model: Module, *, inf: bool = False, allow: Collection[str] = ()) -> None:
        self.model, self.inf, self.allow = model, inf, frozenset(allow)
        self.finding: Finding | None = None
        self._path: list[str] = []

    @contextmanager
    def _modules(self) -> Iterator[None]:
        """Record which module runs each op; the allowed modules are skipped."""
        handles: list[Handle] = []
        for name, module in self.model.named_modules() if hasattr(self.model, "named_modules") else ():
            if hasattr(module, "register_forward_pre_hook"):
                told = f"{name} ({type(module).__name__})" if name else type(module).__name__
                handles.append(module.register_forward_pre_hook(self._enters(name, told)))
                handles.append(module.register_forward_hook(self._leaves(name, told), always_call=True))
        depth = ALLOWED.depth
        try:
            yield
        finally:
            ALLOWED.depth = depth
            library.remove_hooks(self.model, handles)

    def _enters(self, name: str, told: str) -> Callable[..., None]:
        def enters(_module: Module, _args: Args) -> None:
            self._path.append(told)
            ALLOWED.depth += name in self.allow

        return enters

    def _leaves(self, name: str, told: str) -> Callable[..., None]:
        def leaves(module: Module, _args: Args, output: Any) -> None:
            self._path.pop()
            ALLOWED.depth -= name in self.allow
            self._put_out(module, told, output)

        return leaves

    def _put_out(self, module: Module, told: str, output: Any) -> None:
        """Check the output of a module; findings call the module `told`."""
