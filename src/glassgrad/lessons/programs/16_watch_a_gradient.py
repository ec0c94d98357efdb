"""Watch a gradient go.

Hooks, a record of a run, clipping, and what four optimizers make of a gradient.
"""

# A backward pass takes a moment and leaves a gradient at each parameter. This page slows it down: it listens while the
# gradient passes through the layers, keeps a record of a whole run, finds the step at which something went wrong, and
# follows a gradient to the step that an optimizer makes of it.

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.lessons import chart, figure
from glassgrad.lessons.pictures import surface

gg.manual_seed(0)
rng = np.random.default_rng(0)
inputs = rng.normal(size=(320, 4)).astype(np.float32)
targets = np.sin(inputs.sum(1, keepdims=True)).astype(np.float32)


def made():
    gg.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


model = made()

# ## Listening at a tensor
#
# `register_hook` attaches a function to a tensor. The backward pass calls it when the gradient of this tensor is
# complete: after every path has arrived, and before anything is sent on. An intermediate tensor keeps no gradient by
# itself, but a hook sees the gradient pass.

heard = []
x = gg.tensor(inputs[:8])
hidden = model[1](model[0](x))
handle = hidden.register_hook(lambda g: heard.append(("hidden", g.numpy().copy())))
loss = nn.functional.mse_loss(model[4](model[3](model[2](hidden))), gg.tensor(targets[:8]))
print("before backward:", len(heard), "heard")
loss.backward()
print("after backward: ", len(heard), "heard, of shape", heard[0][1].shape)
handle.remove()
assert len(heard) == 1

# ## Listening at every layer
#
# A module has a hook for two gradients: the one that arrives at its output, and the one that it sends on. The hooks run
# in the order of the backward pass: the last layer comes first.

visits = []


def listen(name):
    def hook(module, sent_on, arrived):
        visits.append((name, float(arrived[0].norm()), 0.0 if sent_on[0] is None else float(sent_on[0].norm())))

    return hook


handles = [part.register_full_backward_hook(listen(f"{i} {type(part).__name__}")) for i, part in enumerate(model)]
nn.functional.mse_loss(model(x), gg.tensor(targets[:8])).backward()
for handle in handles:
    handle.remove()
for name, arrived, sent_on in visits:
    print(f"{name:<9} arrives {arrived:.3f}   sent on {sent_on:.3f}")
print("(the first layer sends nothing on: nobody asks for the gradient of the data)")
assert [name[0] for name, *_ in visits] == list("43210")
assert [arrived for _, arrived, _ in visits[1:]] == [sent_on for _, _, sent_on in visits[:-1]]

# ## Changing it on its way
#
# The value that a hook returns replaces the gradient. Here a hook stops the gradient at `hidden`: the layers above
# learn, the one below gets zeros, and no line of the model has changed. (Domain-adversarial training reverses the sign
# instead.)

model = made()
hidden = model[1](model[0](x))
hidden.register_hook(lambda g: g * 0)
nn.functional.mse_loss(model[4](model[3](model[2](hidden))), gg.tensor(targets[:8])).backward()
print("below the hook", float(model[0].weight.grad.norm()), "  above it", round(float(model[2].weight.grad.norm()), 3))
assert float(model[0].weight.grad.norm()) == 0
assert float(model[2].weight.grad.norm()) > 0

# ## A whole run
#
# Nobody reads forty backward passes. `GradientMonitor` records sizes: those of the gradients, of the weights, and of
# the move that each step makes. In this run somebody typed one target wrong, 2500 for 0.25, in the batch of step 20.

typed = targets.copy()
typed[20 * 8] = 2500.0


def train(clip=None):
    model = made()
    optimizer = optim.SGD(model.parameters(), lr=0.03)
    reached = []
    with gg.GradientMonitor(model) as monitor:
        for step in range(40):
            rows = slice(8 * step, 8 * step + 8)
            loss = nn.functional.mse_loss(model(gg.tensor(inputs[rows])), gg.tensor(typed[rows]))
            optimizer.zero_grad()
            loss.backward()
            monitor.update(loss)
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if step in (19, 20, 39):
                with gg.no_grad():  # over all examples, with the right targets
                    reached.append(nn.functional.mse_loss(model(gg.tensor(inputs)), gg.tensor(targets)).item())
    norms = (monitor.data.gradient_norm**2).sum(1) ** 0.5  # of all parameters together
    return norms, monitor.data.update_ratio[:, ::2].max(1), reached  # ::2, the weights without the biases


norms, moved, (before, after, _) = train()
usual = np.median(norms[:20])
first = (norms > 20 * usual).argmax()
print(f"the first gradient above 20 times the usual {usual:.1f} is {norms[first]:.0f}, at step {first}")
print(f"that step moved a layer by {moved[20]:.0f} times its size; usual {np.median(moved[1:20]):.2f}")
print(f"loss over all examples: {before:.2f} before that step, {after:.0f} after it")
assert first == 20

# A layer that moves by many times its size forgets what it knew. A curve of the losses shows *that* something has
# happened; the record says *when*, so you know which batch to look at. (The rest of such a training depends on the last
# digit of the weights.)
#
# ## Clipping
#
# Between `backward` and `step`, the gradient is known and not yet used. Clip it by norm there (lesson 10). The wrong
# target is still wrong, but it costs only one ordinary step in a wrong direction.

clipped_norms, clipped_moved, (_, clipped_after, clipped_end) = train(clip=1.0)
print(f"clipped, that step moves a layer by {clipped_moved[20]:.2f} times its size")
print(f"loss over all examples: {clipped_after:.2f} after it, {clipped_end:.2f} at the end")
lines = {"as it is": list(enumerate(norms)), "clipped at 1": list(enumerate(clipped_norms))}
figure("16_norms", chart(lines, x="step", y="norm of the gradient", log_y=True))
assert clipped_after < 0.6
assert clipped_end < 0.6
assert after > 10

# ## From a gradient to a step
#
# The gradient goes to the optimizer, and each optimizer makes another step of it. SGD goes down the steepest way; the
# steeper the slope, the longer its step. Momentum adds the steps before. RMSprop divides every coordinate by its own
# usual size. Adam does both. Two surfaces show the difference: a ravine, forty times as steep across as along,


def ravine(x, y):
    return 0.05 * x**2 + 2 * y**2


# and a saddle, where one way leads down and the start is nearly, but not quite, on the ridge.


def saddle(x, y):
    return 0.5 * x**2 - y**2 + 0.25 * y**4


def path(height, start, name, rate, steps, **options):
    p = gg.tensor(start, dtype=gg.float64, requires_grad=True)
    optimizer = optim.get_optimizer(name, [p], rate, **options)
    points = [tuple(start)]
    for _ in range(steps):
        optimizer.zero_grad()
        height(p[0], p[1]).backward()
        optimizer.step()
        points.append(tuple(p.detach().tolist()))
    return points


kinds = {
    "SGD": ("sgd", 0.4, {}),
    "momentum": ("sgd", 0.1, {"momentum": 0.8}),
    "RMSprop": ("rmsprop", 0.2, {"alpha": 0.9}),
    "Adam": ("adam", 0.4, {}),
}
surfaces = {
    "ravine": (ravine, (-7.0, 1.4), (-8, 2, -2, 2), (0.02, 0.1, 0.3, 0.8, 1.6, 2.6, 4, 6)),
    "saddle": (saddle, (-2.4, 0.02), (-3, 3, -2, 2), (-0.9, -0.7, -0.4, -0.1, 0.1, 0.5, 1.2, 2.2, 3.4)),
}
heights = {}
for title, (height, start, box, levels) in surfaces.items():
    paths = {name: path(height, start, kind, rate, 30, **rest) for name, (kind, rate, rest) in kinds.items()}
    heights[title] = {name: [height(*point) for point in points] for name, points in paths.items()}
    figure(f"16_{title}", surface(height, box, paths, levels))
    for step in (4, 15):
        print(f"{title}, height after {step:2} steps: ", *(f"{n} {h[step]:.2f} " for n, h in heights[title].items()))

# In the ravine, SGD swings from wall to wall, because the steep direction limits its rate, and then creeps along the
# flat one. Momentum swings wider and gets further. RMSprop and Adam divide by the usual size, so both directions look
# equally steep to them; Adam also has momentum, arrives first and runs past. At the saddle, the slope that leads down
# is a sixtieth of the other at first. SGD and momentum follow the large slope along the ridge and turn at its end;
# RMSprop and Adam go down from the first step on.
#
# ## The check
#
# A hook gets the same gradient as `retain_grad` keeps, and clipping by norm leaves exactly the norm that it was given.

model = made()
hidden = model[1](model[0](x))
hidden.retain_grad()
hidden.register_hook(lambda g: heard.append(("again", g.numpy().copy())))
nn.functional.mse_loss(model[4](model[3](model[2](hidden))), gg.tensor(targets[:8])).backward()
assert np.array_equal(heard[-1][1], hidden.grad.numpy())
assert np.array_equal(heard[-1][1], heard[0][1])
nn.utils.clip_grad_norm_(model.parameters(), 0.1)
assert abs(sum(float((p.grad**2).sum()) for p in model.parameters()) ** 0.5 - 0.1) < 1e-5
assert all(heights["saddle"][name][4] < -0.5 for name in ("RMSprop", "Adam"))
assert all(heights["saddle"][name][4] > 0 for name in ("SGD", "momentum"))
assert min(heights["ravine"], key=lambda name: heights["ravine"][name][15]) == "Adam"
print("Heard, recorded, clipped, and turned into a step.")
