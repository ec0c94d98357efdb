"""Hooks of modules: how they are called, and how a backward hook gets the gradients of a module."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from glassgrad.engine import tape
from glassgrad.engine.mode import is_grad_enabled
from glassgrad.engine.tensor import Handle, Tensor

Hook = Callable[..., Any]


class Hooks:
    """The hooks of one module, in the order in which they are called."""

    def __init__(self) -> None:
        self.before: list[tuple[Hook, bool]] = []
        self.after: list[tuple[Hook, bool, bool]] = []
        self.backward: list[Hook] = []
        self.backward_before: list[Hook] = []

    def add(self, kind: str, hook: Any, first: bool) -> Handle:
        """Add a hook at the end or at the start of those of its kind."""
        listed: list[Any] = getattr(self, kind)
        listed.insert(0 if first else len(listed), hook)
        return Handle(listed, hook)

    def call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the module's `forward` and its hooks."""
        for hook, with_kwargs in list(self.before):
            args, kwargs = _changed_arguments(hook, with_kwargs, module, args, kwargs)
        watch = None
        if self.backward or self.backward_before:
            watch = _BackwardWatch(module, self)
            args = watch.inputs(args)
        result, waiting = None, list(self.after)
        try:
            result = module.forward(*args, **kwargs)
            while waiting:
                hook, with_kwargs, _ = waiting.pop(0)
                changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
                result = result if changed is None else changed
        except Exception:
            for hook, with_kwargs, always in waiting:
                if always:  # the first failure is raised, whatever this hook returns or raises
                    with suppress(Exception):
                        hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
            raise
        return result if watch is None else watch.outputs(result)


def _changed_arguments(
    hook: Hook, with_kwargs: bool, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if with_kwargs:
        changed = hook(module, args, kwargs)
        return (args, kwargs) if changed is None else changed
    changed = hook(module, args)
    if changed is None:
        return args, kwargs
    return (changed if isinstance(changed, tuple) else (changed,)), kwargs


class _BackwardWatch:
    """Calls the backward hooks of one call of a module.

    Inputs and outputs are replaced by aliases, so that the gradients are those of this call only, wherever else the
    tensors are used. A hook can replace the gradient of the input if the module has one input that requires a
    gradient, or if all gradients arrive before the hook is called.
    """

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self.module = module
        self.hooks = hooks
        self.grad_input: list[Any] = []
        self.grad_output: list[Any] = []
        self.waiting_in = self.waiting_out = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self.grad_input = [None] * len(args)
        return tuple([self._watched(x, partial(self._input_arrived, at), True) for at, x in enumerate(args)])

    def outputs(self, result: Any) -> Any:
        several = isinstance(result, tuple)
        parts = result if several else (result,)
        self.grad_output = [None] * len(parts)
        parts = tuple([self._watched(y, partial(self._output_arrived, at), False) for at, y in enumerate(parts)])
        return parts if several else parts[0]

    def _watched(self, x: Any, hook: Hook, is_input: bool) -> Any:
        if not isinstance(x, Tensor) or not x.requires_grad or not is_grad_enabled():
            return x
        if is_input:
            self.waiting_in += 1
        else:
            self.waiting_out += 1
        alias: Tensor = tape.alias(x)
        alias.register_hook(hook)
        return alias

    def _output_arrived(self, position: int, g: Tensor) -> Tensor | None:
        self.grad_output[position] = g
        self.waiting_out -= 1
        replaced = None
        if self.waiting_out == 0:
            for hook in self.hooks.backward_before:
                changed = hook(self.module, tuple(self.grad_output))
                if changed is not None:
                    self.grad_output = list(changed if isinstance(changed, tuple) else (changed,))
                    replaced = self.grad_output[position]
            if self.waiting_in == 0:
                self._finish()
        return replaced

    def _input_arrived(self, position: int, g: Tensor) -> Tensor | None:
        self.grad_input[position] = g
        self.waiting_in -= 1
        if self.waiting_in == 0:
            self._finish()
        replaced: Tensor | None = self.grad_input[position]
        return replaced

    def _finish(self) -> None:
        for hook in self.hooks.backward:
            changed = hook(self.module, tuple(self.grad_input), tuple(self.grad_output))
            if changed is not None:
                self.grad_input = list(changed if isinstance(changed, tuple) else (changed,))
