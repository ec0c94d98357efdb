"""``gg.compile(..., backend="c")``: the same results as eager mode, from the machine's compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.compile.c.draws import state_of, words_of
from glassgrad.nn import functional as F
from tests.compile.c.conftest import needs_compiler

pytestmark = needs_compiler


def losses(backend, steps=6):
    gg.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.Dropout(0.2), nn.ReLU(), nn.Linear(20, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    if backend is not None:
        step = gg.compile(step, backend=backend, strict=True)
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal((8, 6)).astype(np.float32), rng.integers(0, 3, 8)) for _ in range(steps)]
    return [step(gg.tensor(x), gg.tensor(y)).item() for x, y in data]


def test_a_training_step_agrees_with_eager_mode():
    np.testing.assert_allclose(losses("c"), losses(None), rtol=1e-5)


def test_it_is_chosen_where_llvmlite_is_absent():
    program = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name.startswith('llvmlite') else find(name, *rest)\n"
        "import glassgrad as gg\n"
        "step = gg.compile(lambda x: (x.tanh() @ x).sum())\n"
        "print(step.backend, float(step(gg.ones(2, 2))))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    backend, value = run.stdout.split()
    assert backend == "c"
    assert float(value) == pytest.approx(8 * np.tanh(1), rel=1e-5)


def test_an_index_outside_raises():
    step = gg.compile(lambda x, i: x[i], backend="c", strict=True)
    assert step(gg.arange(4), gg.tensor([1, -1])).tolist() == [1, 3]
    with pytest.raises(IndexError):
        step(gg.arange(4), gg.tensor([1, 4]))


def test_a_state_goes_into_words_and_back():
    generator = gg.Generator().manual_seed(7)
    gg.rand(3, generator=generator)
    state = generator.get_state()
    assert state_of(words_of(state).tolist()) == state


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
@pytest.mark.parametrize("draw", ["rand", "randn", "randint"])
def test_the_same_seed_draws_the_same_numbers(draw, dtype, tmp_path):
    """A hundred thousand numbers, so that the rare branches of the ziggurat are taken."""
    from tests.compile.c.conftest import compiled

    count = 100_000
    generator = gg.Generator().manual_seed(5)

    @gg.compile(strict=True)
    def step():
        if draw == "randint":
            return gg.randint(-3, 1000, (count,), generator=generator)
        return getattr(gg, draw)(count, generator=generator, dtype=dtype)

    step()
    step.export_c(tmp_path)
    header = (tmp_path / "step.h").read_text()
    signature = header[header.index("int step_run(") :]
    kind, name = signature[signature.index(", ") + 2 : signature.index(")")].split(" *")
    (tmp_path / "test.c").write_text(
        f'#include <stdio.h>\n#include "step.h"\nstatic struct step model;\nstatic {kind} {name}[{count}];\n'
        "int main(void)\n{\n"
        f'    if (step_init(&model, "step.weights") != 0 || step_run(&model, {name}) != 0) return 1;\n'
        f"    return fwrite({name}, sizeof {name}, 1, stdout) == 1 ? 0 : 1;\n}}\n"
    )
    run = subprocess.run([str(compiled(tmp_path, ["test.c", "step.c"]))], cwd=tmp_path, capture_output=True, check=True)
    want = step().numpy()
    got = np.frombuffer(run.stdout, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == np.float32 else 1e-13)
    # NumPy's tables for normal numbers in float64 differ from ours in their last bits; everything else is equal.
    assert (got == want).mean() > 0.999 or (draw == "randn" and dtype == np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f4", "f8"])
def test_convolutions_of_many_shapes(dtype):
    """Windows in several blocks and strips, strides, distances, groups, odd borders; all three gradients."""
    rng = np.random.default_rng(0)
    cases = [
        ((2, 64, 19, 17), (8, 64, 3, 3), {"padding": 1}),
        ((3, 4, 9, 7), (6, 2, 3, 2), {"stride": (2, 3), "padding": (2, 1), "groups": 2}),
        ((2, 3, 11, 12), (5, 3, 3, 3), {"dilation": 2, "padding": 2}),
        ((1, 2, 6, 40), (3, 2, 1, 5), {"stride": (1, 2)}),
        ((2, 1, 5, 5), (1, 1, 5, 5), {}),
    ]

    def gradients(x, w, options):
        y = F.conv2d(x, w, **options)
        y.square().sum().backward()
        return y.detach(), x.grad, w.grad

    for x_shape, w_shape, options in cases:
        x, w = (gg.tensor(rng.standard_normal(shape).astype(dtype)) for shape in (x_shape, w_shape))

        def step(x, w, options=options):
            return gradients(x.detach().requires_grad_(), w.detach().requires_grad_(), options)

        for got, want in zip(gg.compile(step, backend="c", strict=True)(x, w), step(x, w), strict=True):
            scale = np.abs(want.numpy()).max()
            np.testing.assert_allclose(
                got.numpy() / scale, want.numpy() / scale, atol=1e-5 if dtype == np.float32 else 1e-13
            )


def test_layers_as_wide_as_a_few_vectors():
    """With the options of the Makefile, compilers unroll loops of such lengths, and have done it wrongly."""
    rng = np.random.default_rng(0)
    widths = (4, 8, 12, 16, 17, 24)
    x = gg.tensor(rng.standard_normal((32, 6)).astype(np.float32))
    biases = [gg.tensor(rng.standard_normal(width).astype(np.float32)) for width in widths]
    weights = [gg.tensor(rng.standard_normal((6, width)).astype(np.float32)) for width in widths]

    def step(x, weights, biases):
        leaves = [one.detach().requires_grad_() for one in (*weights, *biases)]
        for w, b in zip(leaves[: len(widths)], leaves[len(widths) :], strict=True):
            ((x @ w + b).relu() @ w.detach().mT).square().mean().backward()
        return tuple(leaf.grad for leaf in leaves)

    got, want = gg.compile(step, backend="c", strict=True)(x, weights, biases), step(x, weights, biases)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
