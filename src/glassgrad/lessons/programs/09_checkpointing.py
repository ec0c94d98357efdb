"""Checkpointing: paying for memory with time.

Keep some layers, compute the others again: what it saves and what it costs.
"""

# A backward pass needs the numbers of the forward pass, so the forward pass keeps them. A network of n
# layers keeps n layers' worth. Checkpointing keeps some of them, and computes the others again when their
# turn comes.

import tracemalloc

import numpy as np

import glassgrad as gg
from glassgrad.checkpoint import checkpoint
from glassgrad.lessons import chart, figure

rng = np.random.default_rng(0)
LAYERS, WIDTH, BATCH = 36, 8, 2000
weights = [gg.tensor(rng.normal(size=(WIDTH, WIDTH)) / 4, requires_grad=True) for _ in range(LAYERS)]
x = gg.tensor(rng.normal(size=(BATCH, WIDTH)))

# ## Weighing
#
# Python's `tracemalloc` records the peak of memory in use, and NumPy reports its arrays to it. The unit below is the
# output of one layer. A counter says how often a layer is computed.

UNIT = BATCH * WIDTH * 8
computed = 0


def run(h, part):
    global computed
    for weight in part:
        computed += 1
        h = (h @ weight).tanh()
    return h


def gradient(segments):
    """Return a gradient, with the layers cut into segments that keep only their input; 0 means no checkpointing."""
    for weight in weights:
        weight.grad = None
    h = x
    for cut in np.array_split(np.arange(LAYERS), segments or 1):
        part = [weights[i] for i in cut]
        h = checkpoint(run, h, part) if segments else run(h, part)
    (h * h).sum().backward()
    return [weight.grad.numpy().copy() for weight in weights]


def weighed(segments):
    """Return the gradient, the peak memory (in layers), and how many layers were computed."""
    global computed
    gradient(segments)  # once unmeasured, so that one-time allocations are not counted
    computed = 0
    tracemalloc.start()
    try:
        found = gradient(segments)
        return found, tracemalloc.get_traced_memory()[1] / UNIT, computed
    finally:
        tracemalloc.stop()


# ## The bill
#
# With k segments of n/k layers, the program keeps k inputs. While it goes backwards through one segment, the n/k layers
# of this segment are in memory as well: about k + n/k. That is smallest at k = √n, here 6, where it is 2√n instead of n
# (Chen et al. 2016). Each layer is computed twice instead of once; since a backward pass costs about two forward
# passes, the whole takes about a third longer.

exact, most, layers = weighed(0)
print(f"without:     {most:4.0f} layers kept, {layers} layers computed")
measured, expected = [], []
for segments in (1, 2, 3, 4, 6, 9, 12, 18, 36):
    found, kept, layers = weighed(segments)
    measured.append((segments, kept))
    expected.append((segments, segments + LAYERS / segments))
    print(f"{segments:2} segments: {kept:4.0f} layers kept, k + n/k = {expected[-1][1]:3.0f}, {layers} layers computed")
    assert all(np.array_equal(a, b) for a, b in zip(exact, found, strict=True))
    assert layers == 2 * LAYERS
lines = {"measured": measured, "k + n/k": expected, "without": [(1, most), (36, most)]}
figure("09_bill", chart(lines, x="segments", y="layers kept"))

# ## The check
#
# The gradients are exactly the same, not nearly: the second computation does what the first one did. The best number of
# segments is about the square root of the layers, and needs less than half of the memory.

best, least = min(measured, key=lambda point: point[1])
assert 4 <= best <= 9
assert least < 0.5 * most
print("About the square root of the layers, and every bit of the gradient.")
