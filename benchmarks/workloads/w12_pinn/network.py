"""A physics-informed network (Raissi, Perdikaris and Karniadakis 2019) for u_t + u u_x = nu u_xx."""

from __future__ import annotations

import itertools

from benchmarks.workloads.w12_pinn import problem as p


def residual(u, u_x, u_t, u_xx):
    """What Burgers' equation says is zero."""
    return u_t + u * u_x - p.VISCOSITY * u_xx


def network(library):
    """The model in `library`, PyTorch or ours: (x, t, places at the edge) to (residual inside, u at the edge)."""
    nn, grad = library.nn, library.autograd.grad

    class Solution(nn.Module):
        """An MLP with tanh, and the equation that it has to fulfil."""

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(*pair) for pair in itertools.pairwise(p.SIZES)])

        def value(self, z):
            for layer in self.layers[:-1]:
                z = library.tanh(layer(z))
            return self.layers[-1](z)

        def forward(self, x, t, edge):
            x, t = x.detach().requires_grad_(True), t.detach().requires_grad_(True)
            u = self.value(library.cat([x, t], 1))
            u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
            (u_xx,) = grad(u_x.sum(), (x,), create_graph=True)
            return residual(u, u_x, u_t, u_xx), self.value(edge)

    return Solution()


def loss_fn(library):
    """The mean squared residual and the mean squared error at the edge."""

    def loss(outputs, wanted):
        residual, edge = outputs
        return (residual**2).mean() + ((edge - wanted) ** 2).mean()

    return loss
