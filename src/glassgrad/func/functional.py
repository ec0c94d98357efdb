"""Modules as functions of their parameters: functional_call, stack_module_state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.tensor import Tensor
from glassgrad.ops.core import Array
from glassgrad.ops.shape import stack


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors instead of its parameters and buffers.

    Args:
        module: unchanged after the call.
        parameter_and_buffer_dicts: name to tensor, with the names of `named_parameters` and
            `named_buffers`; or several such dictionaries. Other tensors keep their values.
        args, kwargs: arguments of the call; a single one needs no tuple.
        tie_weights: whether a tensor that the module holds under several names is replaced under all of them.
        strict: whether every parameter and buffer has to be named.

    Raises:
        AutogradError: for a name that the module does not have.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.Linear(2, 1, bias=False)
        >>> gg.func.functional_call(layer, {"weight": gg.ones(1, 2)}, gg.ones(1, 2))
        tensor([[2.]])
    """
    given: dict[str, Any] = {}
    if isinstance(parameter_and_buffer_dicts, Mapping):
        parameter_and_buffer_dicts = [parameter_and_buffer_dicts]
    for one in parameter_and_buffer_dicts:
        given.update(one)
    with _replaced(module, given, tie_weights, strict):
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))


@contextmanager
def _replaced(module: Any, given: Mapping[str, Array], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Put tensors into the attributes of a module, and restore the attributes after the block."""
    places = {f"{path}.{name}" if path else name: (owner, name) for path, owner, name in _state(module)}
    unexpected = [name for name in given if name not in places]
    missing = [name for name in places if name not in given] if strict else []
    if unexpected or missing:
        raise errors.STATE_DICT_MISMATCH(
            model=type(module).__name__,
            missing="\n  missing: " + ", ".join(missing) if missing else "",
            unexpected="\n  unexpected: " + ", ".join(unexpected) if unexpected else "",
            wrong="",
            next="give the names of the module's own parameters and buffers, or leave strict=False, the default",
        )
    values = {id(places[name][0].__dict__[places[name][1]]): value for name, value in given.items()}
    before = []
    for full, (owner, name) in places.items():
        old = owner.__dict__[name]
        new = given.get(full, values.get(id(old)) if tie_weights else None)
        if new is not None:
            before.append((owner, name, old))
            owner.__dict__[name] = new
    try:
        yield
    finally:
        for owner, name, old in before:
            owner.__dict__[name] = old


def _state(module: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield every tensor attribute below a module, as (path of the owner, owner, name), under all its names."""
    stack_of = [("", module)]
    while stack_of:
        path, owner = stack_of.pop()
        for name, value in owner.__dict__.items():
            if isinstance(value, Tensor):
                yield path, owner, name
        stack_of.extend((f"{path}.{name}" if path else name, child) for name, child in owner.named_children())


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of models of one class, for an ensemble with `vmap`.

    Example:
        >>> import glassgrad as gg
        >>> models = [gg.nn.Linear(2, 3) for _ in range(4)]
        >>> params, buffers = gg.func.stack_module_state(models)
        >>> params["weight"].shape
        (4, 3, 2)
    """
    if not models or len({type(model) for model in models}) > 1:
        raise errors.STACK_MODELS(count=len(models), where=provenance.here())
    return (
        _stacked_by_name([dict(model.named_parameters()) for model in models]),
        _stacked_by_name([dict(model.named_buffers()) for model in models]),
    )


def _stacked_by_name(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    result = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        stacked: Tensor = stack([x.detach() for x in tensors], 0)
        if all(x.requires_grad for x in tensors):
            stacked.requires_grad = True
        result[name] = stacked
    return result
