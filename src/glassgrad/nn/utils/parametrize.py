"""`torch.nn.utils.parametrize`: parameters and buffers that are functions of others.

``register_parametrization(layer, "weight", P())`` lets `layer.weight` be `P()(original)` in every call. The originals
are parameters of `layer.parametrizations.weight`, under the names `original`, or `original0`, `original1`, ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from glassgrad import errors
from glassgrad.base import documents, provenance
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Tensor
from glassgrad.errors.missing import lister
from glassgrad.nn.containers import ModuleDict, ModuleList
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Buffer, Parameter
from glassgrad.nn.utils import computed
from glassgrad.ops.core import bad_option

_cache: dict[tuple[int, str], Any] = {}
_cached_blocks = 0


@contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrised tensor at most once within the block.

    Example:
        >>> import glassgrad as gg
        >>> with gg.nn.utils.parametrize.cached():
        ...     pass
    """
    global _cached_blocks
    _cached_blocks += 1
    try:
        yield
    finally:
        _cached_blocks -= 1
        if not _cached_blocks:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied, and their original tensors.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.parametrizations.weight_norm(gg.nn.Linear(3, 2))
        >>> len(layer.parametrizations["weight"])
        1
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            inverse = self._inverse(original)
        self.is_tensor = isinstance(inverse, Tensor)
        if self.is_tensor:
            if original is not inverse:
                original.array = inverse.array
            self.original = original
            self.ntensors = 1
            return
        kind: Any = Parameter if isinstance(original, Parameter) else Buffer
        for position, tensor in enumerate(inverse):
            setattr(self, f"original{position}", kind(tensor.detach().array))
        self.ntensors = len(inverse)

    def _inverse(self, value: Any) -> Any:
        for parametrization in reversed(list(self)):
            if hasattr(parametrization, "right_inverse"):
                value = parametrization.right_inverse(value)
        return value

    def _originals(self) -> tuple[Any, ...]:
        if self.is_tensor:
            return (self.original,)
        return tuple(getattr(self, f"original{position}") for position in range(self.ntensors))

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrised tensor becomes `value`, as far as the parametrizations can."""
        with no_grad():
            inverse = self._inverse(value)
            for original, new in zip(self._originals(), [inverse] if self.is_tensor else inverse, strict=True):
                original.copy_(new)

    def forward(self) -> Any:
        first, *others = list(self)
        value = first(*self._originals())
        for parametrization in others:
            value = parametrization(value)
        return value


class _Parametrized(computed.Rule):
    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, module: Any) -> Any:
        chain = module.parametrizations[self.name]
        if not _cached_blocks:
            return chain()
        key = id(module), self.name
        if key not in _cache:
            _cache[key] = chain()
        return _cache[key]

    def write(self, module: Any, name: str, value: Any) -> None:
        module.parametrizations[name].right_inverse(value)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let a parameter or buffer of a module be computed by another module; return the first.

    Args:
        module: the module with the tensor.
        tensor_name: the name of its parameter or buffer.
        parametrization: called with the original tensor; its optional method `right_inverse` returns the original (or
            several) for a desired value.
        unsafe: allow a result of another shape or dtype.

    Raises:
        ArgumentError: the module has no such tensor, or the result has another shape or dtype.

    Example:
        >>> import glassgrad as gg
        >>> class Symmetric(gg.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = gg.nn.utils.parametrize.register_parametrization(gg.nn.Linear(3, 3), "weight", Symmetric())
        >>> bool((layer.weight == layer.weight.T).all()), [name for name, _ in layer.named_parameters()]
        (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        before = getattr(module, tensor_name)
        if not unsafe:
            _check(module, tensor_name, before, parametrization(before))
        module.parametrizations[tensor_name].append(parametrization)
        return module
    original = module.__dict__.get(tensor_name)
    if not isinstance(original, Parameter | Buffer):
        owner = type(module).__name__
        raise errors.NOTHING_TO_PARAMETRIZE(owner=owner, name=tensor_name, where=provenance.here())
    expected = original.shape, original.dtype
    chain = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        with no_grad():
            _check(module, tensor_name, expected, chain())
    del module.__dict__[tensor_name]
    if "parametrizations" not in module.__dict__:
        module.parametrizations = ModuleDict()
    computed.compute(module, tensor_name, _Parametrized(tensor_name), "Parametrized")
    module.parametrizations[tensor_name] = chain
    return module


def _check(module: Module, name: str, expected: Any, found: Any) -> None:
    shape, dtype = expected if isinstance(expected, tuple) else (expected.shape, expected.dtype)
    if tuple(found.shape) != tuple(shape) or found.dtype != dtype:
        raise errors.PARAMETRIZED_DIFFERS(
            owner=type(module).__name__,
            name=name,
            expected=f"{tuple(shape)} {dtype}",
            given=f"{tuple(found.shape)} {found.dtype}",
            where=provenance.here(1),
        )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Tell whether a module has a parametrised tensor, or whether the named one is parametrised.

    Example:
        >>> import glassgrad as gg
        >>> gg.nn.utils.parametrize.is_parametrized(gg.nn.Linear(3, 2))
        False
    """
    names = module.__dict__.get("parametrizations", ())
    return isinstance(names, ModuleDict) and (tensor_name in names if tensor_name is not None else len(names) > 0)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Turn a parametrised tensor back into an ordinary one, with its current value or the original.

    Raises:
        ArgumentError: it is not parametrised, or there is no single original to go back to.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.parametrizations.weight_norm(gg.nn.Linear(3, 2))
        >>> layer = gg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
        >>> gg.nn.utils.parametrize.is_parametrized(layer)
        False
    """
    if not is_parametrized(module, tensor_name):
        owner = type(module).__name__
        raise errors.NOTHING_TO_PARAMETRIZE(owner=owner, name=tensor_name, where=provenance.here())
    chain = module.parametrizations[tensor_name]
    if not leave_parametrized and not chain.is_tensor:
        raise bad_option(
            "remove_parametrizations",
            "leave_parametrized",
            False,
            f"True, as {tensor_name} is computed from {chain.ntensors} tensors",
        )
    first = chain._originals()[0]
    kept = first
    if leave_parametrized:
        with no_grad():
            value = chain()
        if chain.is_tensor:
            first.array = value.detach().array
        else:
            kept = type(first)(value.detach().array)
    del module.parametrizations[tensor_name]
    computed.settle(module, tensor_name)
    setattr(module, tensor_name, kept)
    if not len(module.parametrizations):
        del module.__dict__["parametrizations"]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that a module had before it was parametrised.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.parametrizations.weight_norm(gg.nn.Linear(3, 2))
        >>> gg.nn.utils.parametrize.type_before_parametrizations(layer).__name__
        'Linear'
    """
    return computed.base_of(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy the parametrizations and the originals' values to another module of the same kind.

    Example:
        >>> import glassgrad as gg
        >>> first = gg.nn.utils.parametrizations.weight_norm(gg.nn.Linear(3, 2))
        >>> second = gg.nn.utils.parametrize.transfer_parametrizations_and_params(first, gg.nn.Linear(3, 2))
        >>> gg.nn.utils.parametrize.is_parametrized(second, "weight")
        True
    """
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        chain = from_module.parametrizations[name]
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization, unsafe=True)
        with no_grad():
            ours = to_module.parametrizations[name]._originals()
            for mine, theirs in zip(ours, chain._originals(), strict=True):
                mine.copy_(theirs)
    return to_module


__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations"]
__all__ += ["transfer_parametrizations_and_params", "type_before_parametrizations"]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
