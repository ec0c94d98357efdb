"""Hessian-vector products: curvature without the matrix.

How fast the gradient changes, at the price of two gradients, and the largest rate at which descent converges.
"""

# The gradient says which way is down. The Hessian, the matrix of second derivatives, says how long that
# stays true. For a model with a million parameters it has a million million entries, and nobody writes it
# down. But most questions about it only ask for `H @ v`, and that costs about as much as two gradients.

import numpy as np

import glassgrad as gg
from glassgrad.func import grad as gradient_of
from glassgrad.func import hessian, hvp, jvp
from glassgrad.lessons import chart, figure

rng = np.random.default_rng(0)
inputs = gg.tensor(rng.normal(size=(30, 4)))
targets = gg.tensor(rng.normal(size=30))


def loss(w):
    hidden = (inputs @ w.reshape(4, 5)).tanh()
    return ((hidden.sum(1) - targets) ** 2).mean()


w = gg.tensor(rng.normal(size=20))
v = gg.tensor(rng.normal(size=20))

# ## Three ways
#
# **Nudge the gradient.** Walk a little along v and see how the gradient changes: `(g(w + h v) - g(w - h v))
# / 2h`. Two gradients, and an error that depends on a good choice of h.

g = gradient_of(loss)
h = 1e-5
nudged = (g(w + h * v) - g(w - h * v)) / (2 * h)

# **Forward over reverse.** The nudge with h going to 0 is a directional derivative, and directional
# derivatives are what forward mode computes: push the tangent v through the program that computes the
# gradient. No h, no error.

_, pushed = jvp(g, (w,), (v,))

# **Reverse over reverse.** Take the gradient of the number `g(w) · v`. This works too, and needs more memory.

twice = gradient_of(lambda w: (g(w) * v).sum())(w)

# `hvp` is the second of these. All of them agree with the matrix itself, which is small enough to build here:

full = hessian(loss)(w).numpy()
product = hvp(loss, (w,), (v,))
for name, found in (
    ("nudged", nudged),
    ("forward over reverse", pushed),
    ("reverse over reverse", twice),
    ("hvp", product),
):
    print(f"{name:<22} largest error {np.abs(found.numpy() - full @ v.numpy()).max():.1e}")
    assert np.allclose(found.numpy(), full @ v.numpy(), atol=1e-7)

# ## The largest curvature
#
# Multiply a random vector by H again and again, and it turns towards the direction of largest curvature
# (power iteration). Its length grows by that curvature each time. A dozen products, and we know the
# sharpest direction of the landscape.

direction = gg.tensor(rng.normal(size=20))
for _ in range(200):
    _, turned = jvp(g, (w,), (direction,))
    sharpness = float((turned * turned).sum().sqrt() / (direction * direction).sum().sqrt())
    direction = turned / (turned * turned).sum().sqrt()
largest = np.abs(np.linalg.eigvalsh(full)).max()
print(f"largest curvature: {sharpness:.4f} by products, {largest:.4f} from the matrix")

# ## What it is good for
#
# On a quadratic with curvature c, a gradient step of rate r multiplies the distance to the minimum by `1 -
# r c`. That shrinks only if r is below 2 / c. So the largest curvature is a speed limit for gradient
# descent. Let us drive at 0.95 and at 1.05 of it, on the quadratic that the Hessian defines:


def drive(rate):
    position, heights = direction.numpy() * 0.1, []
    for _ in range(60):
        heights.append(float(position @ full @ position))
        position = position - rate * full @ position
    return heights


slow, fast = drive(0.95 * 2 / largest), drive(1.05 * 2 / largest)
runs = {"0.95 of the limit": slow, "1.05 of it": fast}
lines = {name: [(step, abs(height)) for step, height in enumerate(run)] for name, run in runs.items()}
figure("08_speed_limit", chart(lines, x="step", y="height", log_y=True))

# ## The check

assert abs(sharpness - largest) < 1e-3 * largest
assert abs(slow[-1]) < 1e-2 * abs(slow[0])
assert abs(fast[-1]) > 1e2 * abs(fast[0])
print("The curvature predicted where gradient descent breaks.")
