"""The norms of a model's current gradients."""

from __future__ import annotations

from dataclasses import dataclass

from glassgrad.doctor import library
from glassgrad.doctor.library import Module
from glassgrad.doctor.quantities import norms
from glassgrad.doctor.quantities.statistics import norm


@dataclass(frozen=True)
class GradientNorms:
    """Euclidean norms of the gradients of a model.

    Attributes:
        total: the norm of all gradients as one vector, which `clip_grad_norm_` compares with its limit.
        by_parameter: the norm of each parameter's gradient, by name, in the model's order.
        without: names of the trainable parameters without a gradient.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Linear(2, 1)
        >>> model(gg.ones(1, 2)).sum().backward()
        >>> norms = gg.compute_gradient_norms(model)
        >>> round(norms.total, 4), list(norms.by_parameter)
        (1.7321, ['weight', 'bias'])
    """

    total: float
    by_parameter: dict[str, float]
    without: tuple[str, ...]

    def __str__(self) -> str:
        width = max((len(name) for name in (*self.by_parameter, *self.without)), default=5)
        lines = [f"{name:<{width}}  {norm:.3e}" for name, norm in self.by_parameter.items()]
        lines += [f"{name:<{width}}  no gradient" for name in self.without]
        return "\n".join([*lines, f"{'total':<{width}}  {self.total:.3e}"])


def compute_gradient_norms(model: Module) -> GradientNorms:
    """Return the norm of each parameter's gradient and of all gradients together, in double precision.

    Args:
        model: a module of glassgrad or PyTorch, or anything with `named_parameters()`; after its backward pass.

    Example:
        >>> import glassgrad as gg
        >>> layer = gg.nn.Linear(2, 1)
        >>> layer(gg.tensor([[3.0, 4.0]])).sum().backward()
        >>> print(gg.compute_gradient_norms(layer))
        weight  5.000e+00
        bias    1.000e+00
        total   5.099e+00
    """
    found: dict[str, float] = {}
    without = []
    for name, parameter in model.named_parameters():
        gradient = library.gradient(parameter)
        if gradient is not None:
            found[name] = norm(gradient)
        elif library.trainable(parameter):
            without.append(name)
    return GradientNorms(norms.total(found.values()), found, tuple(without))


__all__ = ["GradientNorms", "compute_gradient_norms"]
