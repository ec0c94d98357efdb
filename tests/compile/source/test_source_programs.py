"""Readable sources of random programs with loops, reused names and in-place writes."""

from __future__ import annotations

import itertools
import linecache
import random

import numpy as np
import pytest

import glassgrad as gg

_NUMBERS = itertools.count()
# The first ones broke something once: lists made too late, sums that grow by broadcasting, loops that begin with
# what another loop leaves, zeros that are made before what is added to them is read.
SEEDS = (5022, 8043, 5031, 8467, 5468, 8503, 5962, 8734, *range(6))


def statements(rng, names, indent, count):
    """Some assignments; new names are added to `names`."""
    lines = []
    for _ in range(count):
        target = rng.choice([*names, "t", "u"])
        a, b = rng.choice(names), rng.choice(names)
        value = [
            f"{a} + {b}", f"{a} - 0.3 * {b}", f"({a} * {b}).tanh()", f"({a} @ ws[i]).tanh()", f"{a} * {b} * 0.2",
            f"{a}.sigmoid() * {b}", f"{a} + ({b} @ ws[i] + bs[i]).relu()", f"gg.where({a} > 0, {b}, 0.1 * {a})",
            f"{a} - {a}.mean(1, keepdim=True)", f"{a}.sin()", f"({a} @ v).tanh()",
            f"gg.cat([{a}[:, :2], {b}[:, 2:]], 1)", f"{a} / (1 + {b} * {b})",
        ][rng.randint(0, 12)]  # fmt: skip  # a table
        lines.append(f"{indent}{target} = {value}")
        if target not in names:
            names.append(target)
        if rng.random() < 0.15:
            lines.append(f"{indent}{rng.choice(['h', 's'])} += 0.1 * {rng.choice(names)}")
    return lines


def program(rng):
    """The text of a function of x that returns a loss."""
    names = ["x", "h", "s"]
    lines = ["def f(x):", "    total = []", "    h = x * 0.5", "    s = x + 1.0"]
    for _ in range(rng.randint(1, 3)):
        if rng.random() >= 0.75:
            straight = statements(rng, names, "    ", rng.randint(1, 3))
            lines += [line.replace("ws[i]", "ws[0]").replace("bs[i]", "bs[1]") for line in straight]
            continue
        before = list(names)
        body = statements(rng, names, "        ", rng.randint(1, 4))
        if rng.random() < 0.3:
            body.append(f"        total.append(({rng.choice(names)} * {rng.choice(names)}).mean())")
        if rng.random() < 0.15:
            body.insert(rng.randint(0, len(body)), "        if i % 2: h = h * 0.9")
        lines += [f"    {name} = x * 0.7" for name in names if name not in before]
        lines += [f"    for i in range({rng.randint(2, 5)}):", *body]
    last = f"({rng.choice(names)} * {rng.choice(names)}).mean() + sum(total, 0.0) + (h * 0.01).sum()"
    return "\n".join([*lines, f"    return {last} + ws[0].sum() * 0", ""])


@pytest.mark.parametrize("seed", SEEDS)
def test_programs_with_loops_agree_with_the_tape(seed):
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    text, file = program(rng), f"<random program {next(_NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)

    def drawn(*shape):
        return gg.tensor(numbers.normal(size=shape) * 0.4, requires_grad=True)

    space = {"gg": gg, "ws": [drawn(4, 4) for _ in range(5)], "bs": [drawn(4) for _ in range(5)], "v": drawn(4, 4)}
    exec(compile(text, file, "exec"), space)  # noqa: S102 - a program of our own making
    x = gg.tensor(numbers.normal(size=(3, 4)), requires_grad=rng.random() < 0.5)
    try:
        loss = space["f"](x)
        leaves = [*space["ws"], *space["bs"], space["v"]]
        wanted = gg.autograd.grad(loss, leaves, allow_unused=True)
    except gg.errors.AutogradError:
        pytest.skip("the program writes over what its backward pass needs, and says so")
    paths = [f"ws_{at}" for at in range(5)] + [f"bs_{at}" for at in range(5)] + ["v"]
    for simplify in (False, True):
        source = gg.backward_source(space["f"], simplify=simplify)(x)
        found, gradients = source.function()(*[source.data[name] for name in source.arguments])
        np.testing.assert_allclose(found, loss.item(), rtol=1e-10, err_msg=text)
        for path, gradient in zip(paths, wanted, strict=True):
            if gradient is not None:
                np.testing.assert_allclose(gradients[f"d{path}"], gradient.array, rtol=1e-8, atol=1e-10, err_msg=text)


@pytest.mark.parametrize("signs", ["\u00b2\u00b3\u00b9", "\u00b5\u03bc", "\u0663\u0664", "\u2665x"])
def test_a_program_has_identifiers_for_keys_of_any_signs(signs):
    weights = {f"w{sign}": gg.randn(3, 3) for sign in signs}

    def loss(x):
        for weight in weights.values():
            x = gg.tanh(x @ weight)
        return x.sum()

    compiled = gg.compile(loss)
    compiled(gg.ones(1, 3))
    space = {}
    exec(str(compiled.source), space)  # noqa: S102 - a program that was just written
    found = space["loss"](np.ones((1, 3), np.float32), *[one.numpy() for one in weights.values()])
    np.testing.assert_allclose(found, loss(gg.ones(1, 3)).item(), rtol=1e-5)


REPEATED = {
    "by another": lambda x: x[np.array([[0], [0]]), np.arange(3)],
    "from the end": lambda x: x[np.array([2, -1])],
    "never": lambda x: x[np.arange(3), np.array([1, 1, 0])],
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_place_that_is_indexed_twice_gets_both_gradients(name):
    x = gg.randn(3, 3, requires_grad=True)

    def loss(x):
        return (REPEATED[name](x) ** 2).sum()

    text = str(gg.backward_source(loss)(x))
    assert ("np.add.at" in text) == (name != "never")
    space = {}
    exec(text, space)  # noqa: S102 - a program that was just written
    _, found = space["forward_backward"](x.detach().numpy())
    loss(x).backward()
    np.testing.assert_allclose(found["dx"], x.grad.numpy(), rtol=1e-6)
