"""Families of programs known by their losses: learning to act, equations, noise, derivatives of derivatives."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.wild.draw import Draw, Program, dense, joined


def actor_critic(d: Draw) -> Program:
    """The clipped loss of Schulman et al. (2017), with the value and the entropy."""
    inputs, actions, width, activation = d.among(4, 8, 24), d.among(2, 4, 6), d.width(128), d.among("Tanh", "ReLU")

    def model(T, dropout):
        return joined(
            T,
            body=dense(T, (inputs, width, width), activation),
            actor=T.nn.Linear(width, actions),
            critic=T.nn.Linear(width, 1),
        )

    def loss(T, m, x, action, before, gain, returned):
        h = T.tanh(m.body(x))
        log_all = T.log_softmax(m.actor(h), dim=1)
        ratio = T.exp(log_all.gather(1, action[:, None]).squeeze(1) - before)
        clipped = T.clamp(ratio, 0.8, 1.2)
        value = T.nn.functional.mse_loss(m.critic(h).squeeze(1), returned)
        entropy = -(log_all.exp() * log_all).sum(1).mean()
        return -T.minimum(ratio * gain, clipped * gain).mean() + 0.5 * value - 0.01 * entropy

    def rows(n):
        return d.normal(n, inputs), d.below(actions, n), -d.uniform(n) - 0.5, d.normal(n), d.normal(n)

    text = f"actor and critic, {inputs} inputs, {actions} actions, width {width}, {activation}"
    return Program(text, model, loss, d.batches(rows))


def values(d: Draw) -> Program:
    """Q-learning with a second network that stays (Mnih et al. 2015)."""
    inputs, actions, width = d.among(4, 8, 32), d.among(2, 4, 18), d.width()

    def loss(T, m, x, action, reward, later, ended):
        with T.no_grad():
            wanted = reward + 0.99 * (1 - ended) * m.target(later).max(dim=1).values
        chosen = m.online(x).gather(1, action[:, None]).squeeze(1)
        return T.nn.functional.smooth_l1_loss(chosen, wanted)

    def rows(n):
        ended = (d.uniform(n) < 0.1).astype(np.float32)
        return d.normal(n, inputs), d.below(actions, n), d.normal(n), d.normal(n, inputs), ended

    return Program(
        f"Q-learning, {inputs} inputs, {actions} actions, width {width}",
        lambda T, dropout: joined(
            T,
            online=dense(T, (inputs, width, width, actions)),
            target=dense(T, (inputs, width, width, actions)).requires_grad_(False),
        ),
        loss,
        d.batches(rows),
    )


def ode(d: Draw) -> Program:
    """A neural differential equation (Chen et al. 2018) by steps of Runge and Kutta."""
    inputs, width, steps, activation = (
        d.among(2, 3, 8),
        d.width(128),
        d.among(2, 4, 8),
        d.among("Tanh", "Softplus", "ELU"),
    )

    def loss(T, m, x, y):
        size = 1.0 / steps
        for _ in range(steps):
            k1 = m(x)
            k2 = m(x + 0.5 * size * k1)
            k3 = m(x + 0.5 * size * k2)
            k4 = m(x + size * k3)
            x = x + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return ((x - y) ** 2).mean()

    return Program(
        f"neural ODE in {inputs} dimensions, width {width}, {steps} steps of RK4, {activation}",
        lambda T, dropout: dense(T, (inputs, width, inputs), activation),
        loss,
        d.batches(lambda n: (d.normal(n, inputs), d.normal(n, inputs))),
    )


def diffusion(d: Draw) -> Program:
    """The noise in noisy points or images, the time as waves of several lengths (Ho, Jain and Abbeel 2020)."""
    images, width = d.among(True, False), d.width(64)
    side, half = d.among(8, 16), d.among(8, 16)
    shape = (3, side, side) if images else (d.among(2, 16),)

    def model(T, dropout):
        nn = T.nn
        if images:
            start, end = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
            middle = nn.Sequential(nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU())
        else:
            start, end = nn.Linear(shape[0], width), nn.Linear(width, shape[0])
            middle = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        return joined(T, time=dense(T, (2 * half, width, width), "SiLU"), start=start, middle=middle, end=end)

    def loss(T, m, x, noise, time):
        rates = T.exp(T.arange(half, dtype=T.float32) * (-math.log(1000.0) / half))
        angles = time[:, None] * 100 * rates
        told = m.time(T.cat([angles.sin(), angles.cos()], 1))
        kept = T.cos(0.5 * math.pi * time).reshape(-1, *(1 for _ in shape))
        noisy = kept * x + T.sqrt(1 - kept**2) * noise
        told = told[:, :, None, None] if images else told
        return T.nn.functional.mse_loss(m.end(m.middle(m.start(noisy) + told)), noise)

    text = f"diffusion of {'x'.join(map(str, shape))}, width {width}, {2 * half} waves of time"
    return Program(text, model, loss, d.batches(lambda n: (d.normal(n, *shape), d.normal(n, *shape), d.uniform(n)), 64))


def penalty(d: Draw) -> Program:
    """The slope of a critic, held near one (Gulrajani et al. 2017)."""
    inputs, width, activation = d.among(2, 16, 64), d.width(), d.among("LeakyReLU", "Softplus", "Tanh", "SiLU")

    def loss(T, m, real, drawn, part):
        between = (part * real + (1 - part) * drawn).requires_grad_(True)
        (slope,) = T.autograd.grad(m(between).sum(), (between,), create_graph=True)
        return m(drawn).mean() - m(real).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()

    return Program(
        f"critic with a gradient penalty, {inputs}-{width}-{width}-1, {activation}",
        lambda T, dropout: dense(T, (inputs, width, width, 1), activation),
        loss,
        d.batches(lambda n: (d.normal(n, inputs), 0.5 * d.normal(n, inputs), d.uniform(n, 1))),
    )


def equation(d: Draw) -> Program:
    """The heat or the wave equation by second derivatives of a network (Raissi et al. 2019)."""
    width, depth, name, activation = (
        d.among(16, 20, 32, 64),
        d.among(2, 3),
        d.among("heat", "wave"),
        d.among("Tanh", "SiLU"),
    )
    d.batch = d.among(64, 256, 1000)

    def loss(T, m, x, t, edge, wanted):
        x, t = x.requires_grad_(True), t.requires_grad_(True)
        u = m(T.cat([x, t], 1))
        u_x, u_t = T.autograd.grad(u.sum(), (x, t), create_graph=True)
        (u_xx,) = T.autograd.grad(u_x.sum(), (x,), create_graph=True)
        if name == "wave":
            (u_t,) = T.autograd.grad(u_t.sum(), (t,), create_graph=True)
        return ((u_t - 0.1 * u_xx) ** 2).mean() + ((m(edge) - wanted) ** 2).mean()

    def rows(n):
        edge = d.uniform(n // 4, 2)
        edge[:, 1] = 0
        return d.uniform(n, 1), d.uniform(n, 1), edge, np.sin(np.pi * edge[:, :1])

    return Program(
        f"{name} equation, {depth} layers of {width}, {activation}",
        lambda T, dropout: dense(T, (2, *[width] * depth, 1), activation),
        loss,
        d.batches(rows, d.batch),
    )


def forces(d: Draw) -> Program:
    """An energy, and forces that are its slope: training differentiates twice (Behler and Parrinello 2007)."""
    atoms, width, activation = d.among(4, 9, 20), d.width(96), d.among("Tanh", "SiLU", "Softplus")

    def loss(T, m, places, energy, force):
        places = places.requires_grad_(True)
        apart = places[:, :, None] - places[:, None]
        square = (apart**2).sum(-1) + 0.1
        found = m(T.exp(-square).sum(2)[:, :, None]).sum((1, 2))
        (slope,) = T.autograd.grad(found.sum(), (places,), create_graph=True)
        return ((found - energy) ** 2).mean() + ((slope + force) ** 2).mean()

    return Program(
        f"energy and forces of {atoms} atoms, width {width}, {activation}",
        lambda T, dropout: dense(T, (1, width, width, 1), activation),
        loss,
        d.batches(lambda n: (d.normal(n, atoms, 3), d.normal(n), d.normal(n, atoms, 3)), 64),
    )


def inner_step(d: Draw) -> Program:
    """The loss after a step of gradient descent, differentiated through that step (Finn, Abbeel and Levine 2017)."""
    width, steps, rate = d.among(16, 40, 64), d.among(1, 2, 3), 0.05

    def loss(T, m, x, y, later_x, later_y):
        def value(weights, x):
            first, bias, second, end = weights
            return T.tanh(x @ first.T + bias) @ second.T + end

        weights = tuple(m.parameters())
        for _ in range(steps):
            slopes = T.autograd.grad(((value(weights, x) - y) ** 2).mean(), weights, create_graph=True)
            weights = tuple(weight - rate * slope for weight, slope in zip(weights, slopes, strict=True))
        return ((value(weights, later_x) - later_y) ** 2).mean()

    return Program(
        f"gradient through {steps} inner steps, MLP 1-{width}-1",
        lambda T, dropout: dense(T, (1, width, 1), "Tanh"),
        loss,
        d.batches(lambda n: tuple(d.normal(n, 1) for _ in range(4))),
    )


def waves(d: Draw) -> Program:
    """A picture as a network of sines (Sitzmann et al. 2020)."""
    width, depth, d.batch = d.width(128), d.among(1, 2, 3), d.among(256, 1024, 4096)

    def model(T, dropout):
        nn = T.nn
        layers = [nn.Linear(2, width), *(nn.Linear(width, width) for _ in range(depth))]
        return joined(T, layers=nn.ModuleList(layers), head=nn.Linear(width, 3))

    def loss(T, m, places, colours):
        x = 10 * places
        for layer in m.layers:
            x = T.sin(3 * layer(x))
        return T.nn.functional.mse_loss(m.head(x), colours)

    text = f"picture by sines, {depth + 1} layers of {width}"
    return Program(text, model, loss, d.batches(lambda n: (d.uniform(n, 2), d.uniform(n, 3)), d.batch))
