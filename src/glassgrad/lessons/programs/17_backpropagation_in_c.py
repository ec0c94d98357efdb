"""Backpropagation in C.

A training step as loops over flat memory: read it beside the same step as NumPy, and run it without Python.
"""

# The lessons before this one had Python around every number. A training step needs none of it: no graph, no tape, no
# objects, no memory that is asked for while it runs. `export_c` writes a compiled step as C. This page reads the C
# beside `step.source`, which is the same step as NumPy, and asks of each piece: which line of the backward pass is it?

import math
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import glassgrad as gg
from glassgrad.lessons import chart, figure
from glassgrad.nn import functional as F

# ## One step, twice
#
# Points in the plane, two layers, plain gradient descent: ten lines of Python.

rng = np.random.default_rng(0)
points = rng.normal(size=(64, 2)).astype(np.float32)
labels = (points[:, 0] * points[:, 1] > 0).astype(np.int64)
W1 = gg.tensor(0.7 * rng.normal(size=(2, 16)), dtype=gg.float32, requires_grad=True)
W2 = gg.tensor(0.3 * rng.normal(size=(16, 2)), dtype=gg.float32, requires_grad=True)
b1, b2 = gg.zeros(16, requires_grad=True), gg.zeros(2, requires_grad=True)
optimizer = gg.optim.SGD([W1, b1, W2, b2], lr=0.5)


@gg.compile(backend="numpy")
def step(x, y):
    hidden = (x @ W1 + b1).tanh()
    loss = F.cross_entropy(hidden @ W2 + b2, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


x, y = gg.tensor(points), gg.tensor(labels)
print("loss before", round(step(x, y).item(), 4))
print(step.source)

# The same step as C goes to a folder: one function for each group of lines that share a loop, and `step_run`, which
# calls them in order. Nothing branches, nothing is looked up: what to compute was settled when the step was traced. The
# NumPy text also keeps the gradients for you, in W1_grad and the others; nobody reads them, so the C has no such lines.

folder = Path(tempfile.mkdtemp())
files = step.export_c(folder)
text = (folder / "step.c").read_text(encoding="utf-8")
body = text[text.index("int step_run(") :].split("\n}\n")[0]
calls = [
    (name, words.split())
    for name, words in re.findall(r"^    (\w+)\(([^;]*)\);$", body.replace(",", " "), re.MULTILINE)
]
print(*(name for name, _ in calls), sep="\n")
assert [name.split("_")[0] for name, _ in calls].count("update") >= 2

# The forward functions come first, the backward ones in reverse order after them, and each weight is updated as soon as
# nobody needs its old value any more. W2 is read once more by the backward pass, so its update has to wait.
#
# ## Products and distances
#
# A matrix in C is a row of numbers. Where is element (i, j)? At i times the distance of rows plus j times the distance
# of columns. A product that takes both distances for both matrices is the only one that a backward pass needs:


def product(m, n, k, a, a_row, a_column, b, b_row, b_column):
    c = [0.0] * (m * n)
    for i in range(m):
        for j in range(n):
            for p in range(k):
                c[i * n + j] += a[i * a_row + p * a_column] * b[p * b_row + j * b_column]
    return c


# For y = x @ w, the gradients are dw = x.T @ dy and dx = dy @ w.T. A transpose is the same memory with the distances
# exchanged. So dw is `product(inputs, outputs, batch, x, 1, inputs, dy, outputs, 1)` and dx is
# `product(batch, inputs, outputs, dy, outputs, 1, w, 1, outputs)`. In the C:


def written(name):
    """Return a function of the C program with the comment above it."""
    start = text.rindex("/*", 0, text.index(f"static void {name}("))
    return text[start : text.index("\n}\n", start) + 2]


print(written("backward_dW2"))

# The product in `step.c` computes the same sums in another order: tiles of C stay in registers, and columns of B are
# copied side by side. The sums are those of the three loops above.

hidden = np.tanh(points @ W1.detach().numpy() + b1.detach().numpy())
dlogits = rng.normal(size=(64, 2))
flat = product(16, 2, 64, hidden.ravel().tolist(), 1, 16, dlogits.ravel().tolist(), 2, 1)
print(
    "largest difference to hidden.T @ dlogits:", f"{np.abs(np.reshape(flat, (16, 2)) - hidden.T @ dlogits).max():.0e}"
)
assert np.allclose(np.reshape(flat, (16, 2)), hidden.T @ dlogits)

# ## One loop for three lines
#
# The backward pass through tanh, the gradient of the bias and the update of the bias are three lines of NumPy, and
# three passes over memory:
#
# ```python
# dhidden_pre = dhidden * (1 - hidden**2)
# db1 = dhidden_pre.sum(axis=0)
# b1 -= lr * db1
# ```
#
# In C they are one function. Each element of `dhidden` is read once; its gradient goes over the memory of `hidden`,
# which nobody reads any more, and into the sum of its column.

(fused,) = [name for name, words in calls if "s->b1" in words and name != "compute_hidden"]
print(written(fused))

# The same loop on lists:


def backward_tanh(dhidden, hidden, bias, rate, batch, width):
    sums = [0.0] * width
    for i in range(batch):
        for j in range(width):
            at = i * width + j
            g = dhidden[at] * (1 - hidden[at] * hidden[at])
            dhidden[at] = g
            sums[j] += g
    for j in range(width):
        bias[j] -= rate * sums[j]


dhidden = rng.normal(size=(64, 16))
found, bias = dhidden.ravel().tolist(), [0.0] * 16
backward_tanh(found, hidden.ravel().tolist(), bias, 0.5, 64, 16)
expected = dhidden * (1 - hidden**2)
assert np.allclose(np.reshape(found, (64, 16)), expected)
assert np.allclose(bias, -0.5 * expected.sum(0))

# ## Memory
#
# All values between the functions lie in one array, whose size is a constant in `step.h`. A value needs its place from
# the turn that writes it to the last turn that reads it; what comes later may lie there. A function that reads each
# element just before it writes there has one pointer for both, under the name of the result: `matmul` becomes `hidden`
# in its place, and `hidden` becomes `dhidden_pre`.

shapes = dict(re.findall(r"\b(\w+) f32\[([\d, ]*)\]", text))
sizes = {name: math.prod(map(int, shape.split(", "))) if shape else 1 for name, shape in shapes.items()}
places = {name: int(at or 0) for name, at in re.findall(r"float \*const (\w+) = arena\.f32(?: \+ (\d+))?;", body)}
values = []
for name, place in places.items():
    turns = [turn for turn, (_, words) in enumerate(calls) if name in words]
    values.append((name, sizes[name], turns[0], turns[-1]))
    print(f"{name:<12} {sizes[name]:>5} numbers, turns {turns[0]:>2} to {turns[-1]:>2}, at {place:>5}")


def arena(values):
    """Return a place for each (size, first, last): the largest first, each at the lowest place that is free."""
    places, placed = [0] * len(values), []
    for number in sorted(range(len(values)), key=lambda number: -values[number][0]):
        size, first, last = values[number]
        at = 0
        for other in sorted(placed, key=lambda other: places[other]):
            other_size, other_first, other_last = values[other]
            if first <= other_last and other_first <= last and at + size > places[other]:
                at = max(at, places[other] + other_size)
        places[number] = at
        placed.append(number)
    return places


ours = arena([rest for _, *rest in values])
short = max(place + size for place, (_, size, *_) in zip(ours, values, strict=True))
alone = sum(size for _, size, *_ in values)
alive = [(turn, sum(size for _, size, first, last in values if first <= turn <= last)) for turn in range(len(calls))]
figure("17_memory", chart({"alive": alive, "each alone": [(0, alone), (len(calls) - 1, alone)]}, x="turn", y="numbers"))
in_c = max(places[name] + size for name, size, *_ in values)
print(f"each value alone: {alone} numbers; placed by `arena`: {short}; in the written program: {in_c}")
assert max(count for _, count in alive) <= short < alone
assert in_c < alone

# The largest values are those that the backward pass reads: `hidden` lies where it is from the second turn until the
# gradient of its layer goes over it. That is the memory of backpropagation, which checkpointing (lesson 9) trades for
# time.
#
# ## Running it
#
# The folder has a `main.c` that makes steps on one batch. Any C compiler will do.

compiler = next((found for name in ("gcc", "clang", "cc") if (found := shutil.which(name))), None)
here = [step(x, y).item() for _ in range(20)]
there = []
if compiler is None:
    print("no C compiler here")
else:
    command = [compiler, "-std=c11", "-O1", "-o", "step", "main.c", "step.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    done = subprocess.run([str(folder / "step"), "20"], cwd=folder, check=True, capture_output=True, text=True)
    there = [float(line.split()[-1]) for line in done.stdout.splitlines()]
    for turn in (0, 9, 19):
        print(f"step {turn + 1:>2}: {here[turn]:.4f} in Python, {there[turn]:.4f} in C")

# ## The check
#
# Twenty steps in C have the losses of twenty steps in Python, and the weights that the program stored, under the names
# of the variables above, are those that Python has now.

if compiler is not None:
    assert np.allclose(here, there, rtol=1e-4)
    trained = gg.load(folder / "trained.weights")
    for name, parameter in (("W1", W1), ("b1", b1), ("W2", W2), ("b2", b2)):
        assert np.allclose(trained[name].numpy(), parameter.detach().numpy(), atol=1e-4)
assert here[-1] < here[0]
shutil.rmtree(folder)
print("One step, in two languages, with the same numbers.")
