"""Attention in one native call forwards and one backwards, against NumPy in float64."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops.core import Custom
from glassgrad.ops.fused_attention import attention_p
from glassgrad.ops.kernels import attention, parallel, products

pytest.importorskip("llvmlite", reason="the code is made by LLVM")


@pytest.fixture(autouse=True, params=[1, 2], ids=["one thread", "two threads"])
def threads(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, blas_threads: Callable[[int], None]
) -> int:
    """BLAS and a pool with so many threads; native code for all sizes."""
    blas_threads(request.param)
    monkeypatch.setattr(attention, "FROM", 1)
    monkeypatch.setattr(attention, "LEAST_ROWS", 1)
    monkeypatch.setattr(attention, "WORTH", 1_000_000)
    found = products._threads_of_native_code()
    if found is None or found.lanes not in attention._TILE:
        pytest.skip("the code is for vectors of 64 and of 32 bytes")
    return int(request.param)


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def exact(q: Any, k: Any, v: Any, g: Any, scale: float, causal: bool) -> list[Any]:
    """Return the result and the gradients in float64."""
    q, k, v, g = (one.astype(np.float64) for one in (q, k, v, g))
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    d = g @ v.swapaxes(-1, -2)
    ds = p * (d - (d * p).sum(-1, keepdims=True)) * scale
    return [p @ v, ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g]


def check(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.float32
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6 * np.abs(other).max())


def computed(q: Any, k: Any, v: Any, g: Any, scale: float, causal: bool) -> list[Any]:
    forward = attention.attend(q, k, v, scale, causal)
    assert forward is not None
    back = attention.attend_back(g, forward[1], q, k, v, scale, causal)
    assert back is not None
    return [forward[0], *back]


# Heads along two axes, rows, keys, width, values: ends of tiles, panels, vectors and blocks.
SIZES = [
    (1, 1, 1, 1, 1, 1), (2, 3, 5, 7, 3, 2), (3, 1, 8, 16, 16, 16), (1, 2, 9, 17, 17, 15), (2, 2, 17, 40, 33, 65),
    (2, 2, 70, 33, 16, 48), (1, 3, 40, 130, 20, 31), (2, 1, 129, 5, 40, 8), (1, 1, 100, 2100, 8, 8),
]  # fmt: skip  # a table


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_values_and_gradients_of_every_size(sizes: tuple[int, ...], causal: bool) -> None:
    b, h, rows, keys, width, values = sizes
    q, k = drawn(b, h, rows, width), drawn(b, h, keys, width, seed=1)
    v, g = drawn(b, h, keys, values, seed=2), drawn(b, h, rows, values, seed=3)
    check(computed(q, k, v, g, 0.3, causal), exact(q, k, v, g, 0.3, causal))
    merged = [one.reshape(-1, *one.shape[2:]) for one in (q, k, v, g)]
    check(computed(*merged, 0.3, causal), exact(*merged, 0.3, causal))


@pytest.mark.parametrize("scale", [-0.7, 0.0, 25.0])
def test_scales_of_every_sign_and_scores_far_from_zero(scale: float) -> None:
    q, k, v, g = (10 * drawn(2, 2, 20, 8, seed=at) for at in range(4))
    wanted = exact(q, k, v, g, scale, True)
    for one, other in zip(computed(q, k, v, g, scale, True), wanted, strict=True):
        # Scores of a few thousand are rounded to 2^-12.
        np.testing.assert_allclose(one, other, rtol=5e-3, atol=5e-3 * np.abs(other).max())


def test_heads_of_one_product_lie_as_it_has_left_them() -> None:
    parts = drawn(3, 24, 3, 4, 8)
    q, k, v = parts.transpose(2, 0, 3, 1, 4)
    g = drawn(3, 24, 4, 8, seed=5).transpose(0, 2, 1, 3)
    found = computed(q, k, v, g, 0.3, True)
    check(found, exact(q, k, v, g, 0.3, True))
    assert found[0].transpose(0, 2, 1, 3).flags.c_contiguous


def test_inputs_that_repeat_or_run_backwards_and_cotangents_that_repeat() -> None:
    q = drawn(2, 4, 12, 8)[:, ::-1, ::-1]
    k = np.broadcast_to(drawn(2, 1, 10, 8, seed=1), (2, 4, 10, 8))  # heads that share their keys
    v = drawn(2, 4, 10, 16, seed=2)[..., 8:]
    g = np.broadcast_to(np.float32(0.5), (2, 4, 12, 8))
    check(computed(q, k, v, g, 0.4, False), exact(q, k, v, g, 0.4, False))


def test_what_stands_beside_the_arrays_is_left_alone() -> None:
    """Neither what no row may see nor what lies behind an end is read or written."""
    room = np.full((4, 40, 64), np.nan, np.float32)
    q, k, v, g = (one[:21, 3:30] for one in room)
    for at, one in enumerate((q, k, v, g)):
        one[...] = drawn(21, 27, seed=at)
    found = computed(*(one[None] for one in (q, k, v, g)), 0.2, True)
    check(found, exact(*(one[None] for one in (q, k, v, g)), 0.2, True))
    assert np.isnan(room).sum() == room.size - 4 * 21 * 27


def test_numbers_that_are_not_finite_stay_in_their_rows() -> None:
    q, k, v, g = (drawn(1, 2, 24, 8, seed=at) for at in range(4))
    q[0, 0, 5, 2] = np.nan
    found, _, _, _ = computed(q, k, v, g, 0.3, False)
    wanted = exact(q, k, v, g, 0.3, False)[0]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(found).sum() == 8
    k[0, 1, 20] = np.inf  # a row sees it from 20 on
    late = computed(q, k, v, g, 0.3, True)[0]
    assert np.isfinite(late[0, 1, :20]).all()


def test_numpy_computes_the_rest() -> None:
    q, k, v = (drawn(2, 8, 4, seed=at) for at in range(3))
    assert attention.attend(q, k, v, 0.5, False) is not None
    assert attention.attend(q[0], k[0], v[0], 0.5, False) is None
    assert attention.attend(*(one.astype(np.float64) for one in (q, k, v)), 0.5, False) is None
    assert attention.attend(*(one.astype(">f4") for one in (q, k, v)), 0.5, False) is None
    assert attention.attend(q, k, v.astype(np.float64), 0.5, False) is None
    assert attention.attend(q, k[:1], v[:1], 0.5, False) is None
    assert attention.attend(q, k[:, :0], v[:, :0], 0.5, False) is None
    assert attention.attend(q[:, :0], k, v, 0.5, False) is None
    assert attention.attend(q, k, v[..., :0], 0.5, False) is None
    assert attention.attend(q, k, v, 1e39, False) is None
    assert attention.attend(q[..., ::2], k[..., ::2], v, 0.5, False) is None


def test_sizes_that_do_not_fit_are_errors_still() -> None:
    q, k = gg.zeros(2, 8, 4), gg.zeros(2, 8, 5)
    with pytest.raises(ValueError, match="scaled_dot_product_attention"):
        F.scaled_dot_product_attention(q, k, k)


def few_heads_train() -> list[Any]:
    arrays = [drawn(2, 2, 16, 8, seed=at) for at in range(3)]
    xs = [gg.tensor(one, requires_grad=True) for one in arrays]
    y = F.scaled_dot_product_attention(*xs, is_causal=True)
    (y * y).sum().backward()
    return [y.detach().numpy(), *(x.grad.numpy() for x in xs)]


def test_a_thread_that_finds_the_others_at_work_computes_by_itself() -> None:
    expected = few_heads_train()
    with parallel.shares.busy:
        check(few_heads_train(), expected)
    q, k, v = (drawn(2, 16, 8, seed=at) for at in range(3))
    params = {"scale": 0.5, "causal": True, "masked": False, "dropped": False}
    y, kept = attention_p.evaluate(q, k, v, **params)
    assert type(kept) is attention.Statistics
    with parallel.shares.busy:
        alone = attention_p.joint_vjp(y, (True,) * 3, kept, q, k, v, **params)
    check(alone, exact(q, k, v, y, 0.5, True)[1:])


def test_threads_of_python_side_by_side() -> None:
    expected = few_heads_train()
    found: list[Any] = []
    workers = [threading.Thread(target=lambda: found.extend(few_heads_train() for _ in range(20))) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert len(found) == 80
    for one in found:
        check(one, expected)


def test_derivatives_of_every_kind_agree() -> None:
    """Double backward, forward mode and vmap go through the decomposition, and the gradient of this one is theirs."""
    q, k, v = (gg.tensor(drawn(2, 16, 8, seed=at), requires_grad=True) for at in range(3))

    def loss(q: Any) -> Any:
        return (F.scaled_dot_product_attention(q, k, v, is_causal=True) ** 2).sum()

    (plain,) = gg.autograd.grad(loss(q), [q])
    (again,) = gg.autograd.grad(loss(q), [q], create_graph=True)
    np.testing.assert_allclose(plain.numpy(), again.detach().numpy(), rtol=1e-4, atol=1e-5)
    t = gg.tensor(drawn(2, 16, 8, seed=9))
    _, slope = gg.func.jvp(loss, (q.detach(),), (t,))
    np.testing.assert_allclose(slope.item(), (plain * t).sum().item(), rtol=1e-4)
    each = gg.func.vmap(lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None]))(
        q.detach(), k.detach(), v.detach()
    )
    whole = F.scaled_dot_product_attention(q.detach(), k.detach(), v.detach())
    np.testing.assert_allclose(each.numpy()[:, 0], whole.numpy(), rtol=1e-4, atol=1e-6)


def test_a_write_to_an_input_before_the_backward_pass_is_seen() -> None:
    q, k, v = (gg.tensor(drawn(2, 16, 8, seed=at), requires_grad=True) for at in range(3))
    inner = q * 1
    y = F.scaled_dot_product_attention(inner, k, v)
    inner += 1
    with pytest.raises(RuntimeError):
        y.sum().backward()


FORKED = """
import os
import numpy as np
import glassgrad as gg
from glassgrad.nn import functional as F
from glassgrad.ops.kernels import attention

attention.FROM = 1
def once():
    x = gg.tensor(np.linspace(-1, 1, 4 * 64 * 32, dtype=np.float32).reshape(4, 64, 32), requires_grad=True)
    F.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True).sum().backward()
    return x.grad.numpy()
before = once()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(once(), before) else 1)
assert os.waitpid(child, 0)[1] == 0
print("same")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
def test_a_forked_child_computes_the_same(threads: int) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.stdout == "same\n", done.stderr


@pytest.mark.parametrize("way", ["permute", "chunk", "axis"])
def test_gradients_of_one_projection_are_one_array(way: str) -> None:
    """The cotangent of what q, k and v are slices of is what the native code has written, without a copy."""
    arrived: list[Any] = []
    look = Custom(
        "look", lambda xp, x: x + 0, register=False, jvp=(None,),
        vjp=(lambda g, y, x: arrived.append(g) or g * 1,),
    )  # fmt: skip  # a table
    x = gg.tensor(drawn(2, 16, 3 * 2 * 8), requires_grad=True)
    y = look(x)
    if way == "permute":
        q, k, v = y.unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
    elif way == "axis":
        q, k, v = y.unflatten(-1, (3, 2, 8)).unbind(2)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
    else:
        q, k, v = (one.unflatten(-1, (2, 8)).transpose(1, 2) for one in y.chunk(3, -1))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    g = drawn(2, 2, 16, 8, seed=4)
    mixed.backward(gg.tensor(g))
    given = x.detach().numpy().reshape(2, 16, 3, 2, 8).transpose(2, 0, 3, 1, 4)
    wanted = np.stack(exact(*given, g, 8**-0.5, True)[1:]).transpose(1, 3, 0, 2, 4).reshape(x.shape)
    check([x.grad.numpy()], [wanted])
    assert arrived[0].base is not None
    assert arrived[0].base.size == x.numel()
    assert arrived[0].base.ndim == 1  # so it is made by `interleaved.empty_like`
