"""Topological order: who may send when.

A value may send its gradient on when it has received all of it: three ways to find the order.
"""

# A backward pass visits every number once. When its turn comes, it sends its own gradient times a slope to each of the
# numbers that it was made from. That is only right if its own gradient is *complete*: everything that was made from it
# must have sent already. An order that guarantees this is called topological.

from glassgrad.lessons import figure
from glassgrad.scalar import Value, draw

# ## A diamond
#
# `a` is used twice, and both results meet again. By hand: d = 3a · a² = 3a³, so at a = 2 the slope is 9a² =
# 36.


def diamond():
    a = Value(2.0, label="a")
    b = a * 3
    b.label = "b"
    c = a * a
    c.label = "c"
    d = b * c
    d.label = "d"
    return a, b, c, d


a, b, c, d = diamond()
d.backward()
figure("06_diamond", draw(d).svg)
print(f"d = {d.data:g}, slope for a: {a.grad:g}")

# ## Sending at once is wrong
#
# The obvious recursion, "send to your makers, then let them send to theirs", works on a tree. Here is a
# longer diamond on which it fails: `b` gets a share from `c` and one from `d`, and sends on after each. The
# second time its gradient contains the first share again.


def send_at_once(value, order):
    order.append(value.label)
    for arg, slope in zip(value._args, value._slopes, strict=True):
        arg.grad += value.grad * slope
        send_at_once(arg, order)


def long_diamond():
    x = Value(2.0, label="x")
    b = x.sin()
    b.label = "b"
    c = b.exp()
    c.label = "c"
    d = b + c
    d.label = "d"
    return x, d


x, d = long_diamond()
d.grad, order = 1.0, []
send_at_once(d, order)
too_much = x.grad
x, d = long_diamond()
d.backward()
print(f"sent at once: {too_much:.4f} (visits {' '.join(order)}); in order: {x.grad:.4f}")
assert abs(too_much) > abs(x.grad)

# ## Three ways to an order
#
# **Depth first.** List a value after everything it was made from; reading the list backwards gives an order. Recursion
# is the shortest way to write it, but it fails at the first long sum: Python gives up after a thousand calls.


def depth_first(value, seen, found):
    if value not in seen:
        seen.add(value)
        for arg in value._args:
            depth_first(arg, seen, found)
        found.append(value)
    return found


assert depth_first(d, set(), [])[-1] is d
total = sum(Value(1.0) for _ in range(5000))
try:
    depth_first(total, set(), [])
except RecursionError:
    print("depth first by recursion: the sum of 5000 numbers is too deep")

# **Counting.** Count for every value how many others were made from it; a value that has received from all of them is
# ready. This needs no recursion, and schedulers of build systems do it (Kahn 1962).


def by_counting(root):
    waiting, stack, seen = {}, [root], {root}
    while stack:
        for arg in stack.pop()._args:
            waiting[arg] = waiting.get(arg, 0) + 1
            if arg not in seen:
                seen.add(arg)
                stack.append(arg)
    ready, order = [root], []
    while ready:
        value = ready.pop()
        order.append(value)
        for arg in value._args:
            waiting[arg] -= 1
            if waiting[arg] == 0:
                ready.append(arg)
    return order


# **Time.** A value can only be made from values that exist already. So the order in which they were made
# *is* a topological order, and nothing needs to be searched: number them, and go through the numbers
# backwards. The scalar engine and the tape of this library both do that.


def by_time(root):
    seen, stack = {root}, [root]
    while stack:
        fresh = [arg for arg in stack.pop()._args if arg not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return sorted(seen, key=lambda value: value._seq, reverse=True)


# ## The check
#
# On a graph with many crossings, both orders put every value before everything it was made from, and both give the
# gradient that nudging finds.


def tangled(x, y):
    u, v = x * y, x + y
    for _ in range(6):
        u, v = (u * v).tanh() + x, u - v * y
    return u * v


def run(order, root):
    for value in order:
        value.grad = 0.0
    root.grad = 1.0
    for value in order:
        for arg, slope in zip(value._args, value._slopes, strict=True):
            arg.grad += value.grad * slope


x, y = Value(0.3), Value(-0.8)
root = tangled(x, y)
for find in (by_counting, by_time):
    order = find(root)
    position = {value: i for i, value in enumerate(order)}
    assert all(position[value] < position[arg] for value in order for arg in value._args)
    run(order, root)
    nudged = (tangled(Value(0.3 + 1e-6), Value(-0.8)).data - tangled(Value(0.3 - 1e-6), Value(-0.8)).data) / 2e-6
    assert abs(x.grad - nudged) < 1e-6
assert len(by_counting(total)) == len(by_time(total)) == 10_001
print("Two orders, both topological, both right.")
