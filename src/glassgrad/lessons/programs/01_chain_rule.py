"""The chain rule on numbers.

Slopes multiply along a path and add over paths: one weight, one bias, one example, and a program that records it.
"""

# A derivative answers a small question: if I nudge this number, how much does that number move? Take the
# simplest thing that learns, one weight and one bias, with one example: the input is 2, the target is 1,
# and the loss is the squared error.

from glassgrad.explanation import explain
from glassgrad.lessons import figure
from glassgrad.scalar import Value, draw


def loss_of(x, w, b, target):
    prediction = x * w + b
    miss = prediction - target
    return miss * miss


# ## Nudging
#
# The honest way to find a slope is to nudge and look. With the nudge 0.001 the loss moves by about 28 times
# the nudge of `w`, and by about 14 times the nudge of `b`.

x, w, b, target = 2.0, 3.0, 2.0, 1.0
start = loss_of(x, w, b, target)
nudge = 0.001
slope_w = (loss_of(x, w + nudge, b, target) - start) / nudge
slope_b = (loss_of(x, w, b + nudge, target) - start) / nudge
print(f"loss {start:g}   slope for w {slope_w:.3f}   slope for b {slope_b:.3f}")

# Nudging works for any function and needs no thought. It also costs one evaluation per number, and a model
# has millions of them. The chain rule gets all slopes at once.
#
# ## One link
#
# A calculation is a chain of small steps, and each small step has an easy slope. In `miss * miss` a nudge
# of `miss` counts twice, once per factor, so the slope is `miss + miss = 14`. In `prediction - target` a
# nudge of the prediction passes unchanged: slope 1. In `x * w + b` a nudge of `w` is magnified by `x`:
# slope 2.
#
# ## The chain
#
# If `w` moves the prediction twice as far, and the prediction moves the loss fourteen times as far, then
# `w` moves the loss 2 · 14 = 28 times as far. That is the whole rule: *along a path, slopes multiply*. And
# if there are several paths, a nudge travels along each of them, so *over paths, slopes add*. The 14 of
# `miss * miss` was already such a sum: two paths, 7 each.
#
# `explain` writes this out for every step, first down and then back up. The column "adds" holds the product along one
# link; a name receives the sum of its products.

print(explain(loss_of, x, w, b, target))

# ## A machine for it
#
# A program can keep a record: each number remembers the numbers it was made from, and the slope for each. Going
# backwards from the loss, each number sends them its own slope times theirs. `glassgrad.scalar` does this in 200 lines.
# Here is its record:

values = [Value(number, label=name) for number, name in ((x, "x"), (w, "w"), (b, "b"), (target, "target"))]
loss = loss_of(*values)
loss.backward()
figure("01_graph", draw(loss).svg)
for value in values:
    print(f"{value.label:<7} {value.data:5g}   slope {value.grad:5g}")

# ## The check
#
# The recorded slopes are those of nudging, up to the error of the nudge itself.

assert abs(values[1].grad - slope_w) < 0.01
assert abs(values[2].grad - slope_b) < 0.01
assert values[1].grad == 28.0
print("The chain rule and the nudges agree.")
