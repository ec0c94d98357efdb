"""`weight_norm` and `spectral_norm` in PyTorch's older form, which keeps the parameters on the module under other
names.

Sources: Salimans and Kingma 2016; Miyato et al. 2018.
"""

from __future__ import annotations

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine.mode import no_grad
from glassgrad.engine.tensor import Handle
from glassgrad.nn.module import Module
from glassgrad.nn.parameter import Parameter
from glassgrad.nn.utils import computed
from glassgrad.nn.utils.parametrizations import as_matrix, iterate, largest, norm_except, start
from glassgrad.ops.core import Array


class _WeightNorm(computed.Rule):
    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def read(self, module: Module) -> Array:
        v = getattr(module, f"{self.name}_v")
        return v * (getattr(module, f"{self.name}_g") / norm_except(v, self.dim))


class _SpectralNorm(computed.Rule):
    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim
        self.handle: Handle | None = None

    def read(self, module: Module) -> Array:
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        return weight / largest(as_matrix(weight, self.dim), u, v)


class _Follow:
    """A hook: one round of power iteration before every call in training mode."""

    def __init__(self, name: str, dim: int, rounds: int, eps: float) -> None:
        self.name, self.dim, self.rounds, self.eps = name, dim, rounds, eps

    def __call__(self, module: Module, _args: object) -> None:
        if module.training:
            u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
            matrix = as_matrix(getattr(module, f"{self.name}_orig"), self.dim)
            iterate(matrix.T, v, u, self.rounds, self.eps)  # PyTorch's first form moves v first


def _taken(module: Module, name: str) -> Parameter:
    """Remove a parameter from a module and return it."""
    weight = module.__dict__.get(name)
    if not isinstance(weight, Parameter):
        owner = type(module).__name__
        raise errors.NOTHING_TO_PARAMETRIZE(owner=owner, name=name, where=provenance.here(1))
    del module.__dict__[name]
    return weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a weight by ``g * v / |v|``, with g and v as the parameters `weight_g` and `weight_v`; return the module.

    Args:
        module: the module with the weight.
        name: the weight's name.
        dim: the dimension along which each index has its own length; None for a single length.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.weight_norm(gg.nn.Linear(2, 3))
        >>> {name: p.shape for name, p in layer.named_parameters()}
        {'bias': (3,), 'weight_g': (3, 1), 'weight_v': (3, 2)}
    """
    weight = _taken(module, name)
    with no_grad():
        length = norm_except(weight, dim)
    setattr(module, f"{name}_g", Parameter(length.array, weight.requires_grad))
    setattr(module, f"{name}_v", Parameter(weight.array, weight.requires_grad))
    computed.compute(module, name, _WeightNorm(name, dim))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Turn a weight under `weight_norm` back into an ordinary parameter with its current value.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.weight_norm(gg.nn.Linear(3, 2))
        >>> layer = gg.nn.utils.remove_weight_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    return _removed(module, name, _WeightNorm, ("_g", "_v"))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, which every call in training mode updates.

    Args:
        module: the module with the weight; the parameter becomes `weight_orig`, with buffers `weight_u` and `weight_v`.
        name: the weight's name.
        n_power_iterations: steps of power iteration per call.
        eps: lower bound of the length in a division.
        dim: the dimension of the outputs; 0, or 1 for transposed convolutions.

    Example:
        >>> import glassgrad as gg
        >>> list(gg.nn.utils.spectral_norm(gg.nn.Linear(4, 4)).state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if dim is None:
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    weight = _taken(module, name)
    setattr(module, f"{name}_orig", weight)
    u, v = start(as_matrix(weight.detach(), dim), eps)
    setattr(module, f"{name}_u", u)
    setattr(module, f"{name}_v", v)
    rule = _SpectralNorm(name, dim)
    rule.handle = module.register_forward_pre_hook(_Follow(name, dim, n_power_iterations, eps))
    computed.compute(module, name, rule)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Turn a weight under `spectral_norm` back into an ordinary parameter with its current value.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.utils.spectral_norm(gg.nn.Linear(3, 2))
        >>> layer = gg.nn.utils.remove_spectral_norm(layer)
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight']
    """
    return _removed(module, name, _SpectralNorm, ("_orig", "_u", "_v"))


def _removed(module: Module, name: str, kind: type[computed.Rule], parts: tuple[str, ...]) -> Module:
    rule = computed.rules_of(module).get(name)
    if not isinstance(rule, kind):
        owner = type(module).__name__
        raise errors.NOTHING_TO_PARAMETRIZE(owner=owner, name=name, where=provenance.here(1))
    with no_grad():
        value = rule.read(module)
    computed.settle(module, name)
    if isinstance(rule, _SpectralNorm) and rule.handle is not None:
        rule.handle.remove()
    for part in parts:
        del module.__dict__[name + part]
    setattr(module, name, Parameter(value.detach().array))
    return module


__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]
