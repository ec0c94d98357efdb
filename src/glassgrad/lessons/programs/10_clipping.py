"""What clipping does, and what it does not.

Shorten gradients that are too long, by norm or by value, and what that does not cure.
"""

# Some losses have cliffs: long flat stretches, and then a wall. At the foot of the wall the gradient is
# enormous, and one step along it throws the parameters far away. Clipping shortens gradients that are too
# long.

import numpy as np

from glassgrad.lessons import chart, figure

# ## Two kinds
#
# *By norm*: if the whole gradient is longer than c, scale it down to length c. *By value*: cut every entry
# to the range from -c to c. The difference is the direction.

g = np.array([30.0, 4.0])


def by_norm(g, c):
    return g * np.minimum(1.0, c / np.sqrt((g * g).sum()))


def by_value(g, c):
    return np.clip(g, -c, c)


def angle(a, b):
    return np.degrees(np.arccos(a @ b / np.sqrt((a @ a) * (b @ b))))


for name, clip in (("by norm", by_norm), ("by value", by_value)):
    clipped = clip(g, 5.0)
    length = np.sqrt(clipped @ clipped)
    print(f"{name:<9} {np.round(clipped, 2)}   length {length:.2f}   turned by {angle(g, clipped):.1f} degrees")
assert angle(g, by_norm(g, 5.0)) < 1e-4
assert angle(g, by_value(g, 5.0)) > 20

# Clipping nearly always means clipping by norm: the direction is information, the length is a hint. And the
# norm is taken over *all* parameters together, so that their proportions survive too. A gradient shorter
# than c is not touched at all.
#
# ## At the cliff
#
# A valley with a wall: the height is x² / 20, and to the left of x = 0 a steep exponential is added.
# Descending with momentum, the walker reaches the wall with some speed, and the wall throws it back.


def height(x):
    return x * x / 20 + np.exp(-6 * x)


def slope(x):
    return x / 10 - 6 * np.exp(-6 * x)


def walk(clip, steps=80):
    x, speed, path = 6.0, 0.0, []
    for _ in range(steps):
        path.append(x)
        gradient = np.array([slope(x)])
        if clip is not None:
            gradient = by_norm(gradient, clip)
        speed = 0.9 * speed - 0.3 * gradient[0]
        x = float(np.clip(x + speed, -1e3, 1e3))
    return path


free, clipped = walk(None), walk(1.0)
print(f"farthest from the valley: {max(map(abs, free)):.0f} without clipping, {max(map(abs, clipped)):.1f} with")
figure(
    "10_cliff",
    chart(
        {"clipped": list(enumerate(clipped)), "free": [(k, np.clip(v, -20, 20)) for k, v in enumerate(free)]},
        x="step",
        y="x",
    ),
)

# ## What it does not do
#
# It does not repair a gradient that is not a number. The norm of a gradient with one nan is nan, the scale
# is nan, and now *every* entry is: clipping spreads the damage.

poisoned = by_norm(np.array([np.nan, 1.0, 2.0]), 1.0)
print("a nan, clipped:", poisoned)
assert np.isnan(poisoned).all()

# It does not make training stable at any rate: where the loss is merely curved too much (lesson 8), the
# gradient is not long, and there is nothing to clip.


def quadratic(rate, clip):
    x, path = np.array([0.5]), []
    for _ in range(40):
        path.append(abs(float(x[0])))
        gradient = x * 1.0
        x = x - rate * (by_norm(gradient, clip) if clip else gradient)
    return path


unclipped, bounded = quadratic(2.1, None), quadratic(2.1, 1.0)
print(f"rate over the limit: {unclipped[-1]:.0f} without clipping, {bounded[-1]:.2f} with; neither arrives")
assert unclipped[-1] > 10
assert bounded[-1] > 0.5

# And it changes little for Adam, which divides by the size of recent gradients: a constant factor
# cancels.
#
# ## The check

assert max(map(abs, free)) > 50
assert max(map(abs, clipped)) < 10
assert abs(slope(clipped[-1])) < 0.1
assert np.array_equal(by_norm(np.array([0.3, 0.4]), 1.0), [0.3, 0.4])
print("Clipping by norm keeps the direction and survives the cliff.")
