"""Writing in place: the same programs in PyTorch are the oracle; views, version checks and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.engine import inplace
from glassgrad.ops.names import PUBLIC

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of in-place programs")


def real(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


# --- programs ---------------------------------------------------------------------------------------
# Each takes the library and its tensors and returns one number. They run in both libraries as they stand.


def write_to_base_seen_by_view(lib: Any, a: Any, b: Any) -> Any:
    h = a * 1
    view = h.view(-1)
    h.add_(b)
    return (h * view.view(3, 4)).sum()


def write_to_view_seen_by_base(lib: Any, a: Any, b: Any) -> Any:
    h = a * 1
    view = h.view(-1)
    view.mul_(2)
    h.add_(b)
    return (h * view.view(3, 4)).sum()


def views_of_views(lib: Any, a: Any, b: Any) -> Any:
    h = a * 2
    row, column, turned = h[1], h[:, 0], h.t()
    row.add_(b[0])
    turned.mul_(3)
    column += 1
    return (h * h).sum() + (row * row).sum() + (column**3).sum()


def rows_of_an_untracked_buffer(lib: Any, a: Any, b: Any) -> Any:
    buffer = lib.zeros(3, 4, dtype=a.dtype)
    first, second = buffer[0], buffer[1]
    first.copy_(a[0])
    buffer.view(-1)[4:8] = b[0]
    return (buffer**2).sum() + (second * first).sum()


def recurrent_loop(lib: Any, a: Any, b: Any) -> Any:
    out = lib.zeros(3, 4, dtype=a.dtype)
    h = b[0]
    for t in range(3):
        h = (h * a[t]).tanh()
        out[t] = h
    return (out**2).sum()


def through_a_diagonal(lib: Any, a: Any, b: Any) -> Any:
    h = a[:, :3] * 1
    d = h.diagonal()
    d.mul_(b[0, :3])
    return (h**2).sum() + (d**3).sum()


def assignments(lib: Any, a: Any, b: Any) -> Any:
    h = a * 1
    h[h > 1] = 0
    h[[0, 2], [1, 1]] = b[0, :2]
    h[:, -1] += 2
    h[1, ..., 1:3] = b[1, :2]
    h[0] = 3.0
    h /= 3
    h.clamp_(min=0.1)
    h.sigmoid_()
    return (h * h).sum()


def whole_tensor_overwritten(lib: Any, a: Any, b: Any) -> Any:
    h, k = a * 2, a * 3
    h.zero_()
    k.fill_(2.0)
    k.copy_(b)
    return (h * 3 + a * k).sum()


def the_same_tensor_as_operand(lib: Any, a: Any, b: Any) -> Any:
    h = a * 1
    h.add_(h)
    h.sub_(h.mean())
    return (h * b).sum()


def scattering(lib: Any, a: Any, b: Any) -> Any:
    index = lib.tensor(np.array([0, 2, 0]))
    h = a * 1
    h.index_add_(0, index, b)
    h.scatter_add_(1, lib.tensor(np.array([[0, 0], [1, 2], [3, 3]])), b[:, :2])
    h.masked_fill_(h > 1.5, 0.25)
    h.index_put_((lib.tensor(np.array([1, 2])), lib.tensor(np.array([3, 3]))), b[0, :2])
    return (h**3).sum()


def arithmetic(lib: Any, a: Any, b: Any) -> Any:
    h = a.abs() + 1
    h.pow_(2).div_(b.abs() + 1).neg_()
    h.addcmul_(a, b, value=0.5).lerp_(b, 0.3)
    h.mul_(2).sub_(a, alpha=3)
    h -= b
    h *= 0.5
    h **= 2
    return h.sum()


def write_to_a_flipped_copy(lib: Any, a: Any, b: Any) -> Any:
    h = a * 1
    turned = lib.flip(h, (0, 1))
    turned.mul_(b)
    return (h * turned).sum()


def mean_of_flipped_view(lib: Any, a: Any, b: Any) -> Any:
    h = a * 1
    h.unsqueeze(0)[0, 1].mul_(b[1])
    h.reshape(2, 6)[1, :3] = b[0, :3]
    return (h * h).mean()


def writes_without_gradient(lib: Any, a: Any, b: Any) -> Any:
    h = a * b
    with lib.no_grad():
        k = h.detach().clone()
        k += 5
        k[0] = 1
    return (h * k).sum()


PROGRAMS = [
    write_to_base_seen_by_view,
    write_to_view_seen_by_base,
    views_of_views,
    rows_of_an_untracked_buffer,
    recurrent_loop,
    through_a_diagonal,
    assignments,
    whole_tensor_overwritten,
    the_same_tensor_as_operand,
    scattering,
    arithmetic,
    mean_of_flipped_view,
    write_to_a_flipped_copy,
    writes_without_gradient,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_agree_with_pytorch(program: Callable[..., Any]) -> None:
    arrays = [real(3, 4), real(3, 4, seed=1)]
    results = []
    for lib in (gg, torch):
        inputs = [lib.tensor(array, requires_grad=True) for array in arrays]
        y = program(lib, *inputs)
        y.backward()
        results.append((float(y.detach()), [np.zeros((3, 4)) if x.grad is None else x.grad.numpy() for x in inputs]))
    (ours, gradients), (theirs, expected) = results
    assert ours == pytest.approx(theirs, rel=1e-12)
    for g, g_expected in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(g, g_expected, rtol=1e-10, atol=1e-12)


def test_second_derivatives_through_an_assignment_agree_with_pytorch() -> None:
    found = []
    for lib in (gg, torch):
        x = lib.tensor(real(3), requires_grad=True)
        h = x * 2
        h[1] = x[0] ** 3
        h.mul_(x)
        (g,) = lib.autograd.grad((h**2).sum(), x, create_graph=True)
        (g2,) = lib.autograd.grad((g**2).sum(), x)
        found.append(g2.numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10)


# --- every method -----------------------------------------------------------------------------------

COMPARING = ["eq", "ge", "gt", "greater", "greater_equal", "le", "less", "less_equal", "lt", "ne", "not_equal"]
COMPARING += ["logical_and", "logical_or", "logical_xor"]
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        [
            "add",
            "sub",
            "subtract",
            "mul",
            "multiply",
            "div",
            "divide",
            "true_divide",
            "atan2",
            "arctan2",
            "copysign",
            "hypot",
            "fmod",
            "remainder",
            "pow",
            "xlogy",
            "floor_divide",
            "float_power",
            "ldexp",
        ],
        (real(3, 4, seed=5) ** 2 + 0.5,),
    ),
    "addcdiv": (real(3, 4, seed=2), real(3, 4, seed=3) ** 2 + 1),
    "addcmul": (real(3, 4, seed=2), real(3, 4, seed=3)),
    "clamp": (0.2, 0.8),
    "clip": (0.2, 0.8),
    "clamp_min": (0.5,),
    "clamp_max": (0.5,),
    "cumprod": (1,),
    "cumsum": (0,),
    "index_add": (0, np.array([0, 0, 2]), real(3, 4, seed=4)),
    "index_copy": (0, np.array([2, 1, 0]), real(3, 4, seed=4)),
    "index_fill": (1, np.array([1, 3]), 0.5),
    "index_put": ((np.array([0, 2]), np.array([1, 1])), real(2)),
    "lerp": (real(3, 4, seed=4), 0.3),
    "masked_fill": (real(3, 4, seed=4) > 0, 0.5),
    "masked_scatter": (real(3, 4, seed=4) > 0, real(12)),
    "put": (np.array([0, -1, 5]), real(3)),
    "renorm": (2, 0, 1.0),
    "scatter": (1, np.array([[0, 1], [2, 3], [1, 0]]), real(3, 2)),
    "scatter_add": (1, np.array([[0, 0], [2, 3], [1, 1]]), real(3, 2)),
    "threshold": (0.5, 0.1),
    "addbmm": (real(2, 3, 5), real(2, 5, 4)),
    "addmm": (real(3, 5), real(5, 4)),
    "addmv": (real(3, 5), real(5)),
    "addr": (real(3), real(4)),
    "baddbmm": (real(3, 2, 5), real(3, 5, 4)),
    "index_reduce": (0, np.array([0, 0, 2]), real(3, 4, seed=4), "mean"),
    "mvlgamma": (1,),
    "polygamma": (1,),
    "nextafter": (1.0,),
    **dict.fromkeys(("heaviside", "igamma", "igammac"), (real(3, 4, seed=5) ** 2 + 0.5,)),
    **dict.fromkeys(COMPARING, (np.full((3, 4), 0.5),)),
    "scatter_reduce": (1, np.array([[0, 0], [2, 3], [1, 1]]), real(3, 2), "amax"),
}
SHIFTS = {"bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"}
INTEGER = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", *SHIFTS}
# The result of these has no gradient, or it is refused: PyTorch's is 0 where there is one.
NO_GRADIENT = {*COMPARING, "logical_not", "heaviside", "nextafter"}
SHAPES = {"addmv": (3,), "baddbmm": (3, 2, 4)}


@pytest.mark.parametrize("name", [name for name in inplace.IN_PLACE if name not in INTEGER])
def test_method_equals_the_function_in_value_gradient_and_memory(name: str) -> None:
    shape = SHAPES.get(name, (3, 4))
    start = np.random.default_rng(0).uniform(0.1, 0.9, shape)
    start += 1.0 if name in {"acosh", "arccosh"} else 0.0
    arguments = tuple(gg.tensor(part) if isinstance(part, np.ndarray) else part for part in ARGUMENTS.get(name, ()))
    tracked = not name.startswith("igamma")  # which have no derivative here, and refuse
    x = gg.tensor(start, requires_grad=tracked)
    expected = PUBLIC[name](x * 1, *arguments)
    written = x * 1
    memory = written.array
    assert getattr(written, f"{name}_")(*arguments) is written
    assert written.array is memory
    np.testing.assert_array_equal(memory, expected.detach().numpy())
    weights = gg.tensor(real(*shape, seed=9))
    if name in NO_GRADIENT:
        assert not gg.autograd.grad((written * weights).sum(), x)[0].numpy().any()
    elif tracked:
        (g,) = gg.autograd.grad((written * weights).sum(), x)
        (g_expected,) = gg.autograd.grad((expected * weights).sum(), x)
        np.testing.assert_allclose(g.numpy(), g_expected.numpy(), rtol=1e-12)
    plain = gg.tensor(start)
    memory = plain.array
    getattr(plain, f"{name}_")(*arguments)
    assert plain.array is memory
    assert not plain.requires_grad
    np.testing.assert_array_equal(plain.numpy(), expected.detach().numpy())


@pytest.mark.parametrize("name", sorted(INTEGER))
def test_integer_methods(name: str) -> None:
    x = gg.tensor([5, 6, 7])
    arguments = () if name == "bitwise_not" else (3,)
    expected = PUBLIC[name](x, *arguments).numpy()
    np.testing.assert_array_equal(getattr(x, f"{name}_")(*arguments).numpy(), expected)


def test_every_method_is_a_function_too() -> None:
    x = gg.tensor([-1.0, 2.0])
    assert gg.relu_(x) is x
    assert x.tolist() == [0.0, 2.0]


def test_random_fills_follow_the_generator() -> None:
    draws = []
    for _ in range(2):
        generator = gg.Generator().manual_seed(3)
        x = gg.zeros(1000)
        parts = [
            x.normal_(2.0, 0.5, generator=generator).clone(),
            x.uniform_(-1, 1, generator=generator).clone(),
            x.bernoulli_(0.25, generator=generator).clone(),
            x.exponential_(2.0, generator=generator).clone(),
            x.random_(0, 10, generator=generator).clone(),
        ]
        draws.append(np.stack([part.numpy() for part in parts]))
    np.testing.assert_array_equal(draws[0], draws[1])
    means = draws[0].mean(1)
    np.testing.assert_allclose(means, [2.0, 0.0, 0.25, 0.5, 4.5], atol=0.2)
    assert set(np.unique(draws[0][2])) == {0.0, 1.0}
    assert draws[0][4].min() >= 0
    assert draws[0][4].max() <= 9


def test_fill_diagonal() -> None:
    assert gg.zeros(2, 3).fill_diagonal_(5).tolist() == [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]]


# --- views without gradients, memory from elsewhere ---------------------------------------------------


def test_memory_of_numpy_sees_the_write_and_gives_it() -> None:
    array = np.zeros(3)
    t = gg.from_numpy(array)
    t += 1
    t[0] = 5
    assert array.tolist() == [5.0, 1.0, 1.0]
    array += t
    assert t.tolist() == [10.0, 2.0, 2.0]


def test_data_and_detach_share_memory() -> None:
    p = gg.ones(2, requires_grad=True)
    p.data += 1
    p.detach().mul_(3)
    assert p.tolist() == [6.0, 6.0]
    assert p.requires_grad
    assert p.is_leaf


def test_dead_views_are_forgotten() -> None:
    h = gg.ones(4, requires_grad=True) * 1
    for _ in range(1000):
        h.view(2, 2)
    assert len(h._extra["views"]) <= 64
    alive = [h[i : i + 1] for i in range(4)]
    h.mul_(2)
    assert all(view.requires_grad and view.item() == 2.0 for view in alive)


def test_retain_grad_follows_the_write() -> None:
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    h.retain_grad()
    h.mul_(2)
    (h**2).sum().backward()
    np.testing.assert_allclose(h.grad.numpy(), 2 * h.detach().numpy())


def test_a_mask_that_selects_nothing_is_no_write() -> None:
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y[y < 0] = 0
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.exp([1.0, 2.0]), rtol=1e-6)


def test_inside_vmap() -> None:
    def f(x: Any) -> Any:
        h = x.clone()
        h += 1
        row = h[0]
        row.mul_(x[1])
        h[1] = 7.0
        return (h**2).sum()

    rows = gg.tensor(real(5, 3))
    found = gg.func.vmap(gg.func.grad(f))(rows).numpy()
    for row, g in zip(rows, found, strict=True):
        x = gg.tensor(row.numpy(), requires_grad=True)
        f(x).backward()
        np.testing.assert_allclose(g, x.grad.numpy(), rtol=1e-12)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.add_(1),
        lambda w: w.__setitem__(0, 1.0),
        lambda w: w.__iadd__(1),
        lambda w: w.zero_(),
        lambda w: w.exp_(),
    ],
)
def test_a_leaf_with_a_gradient_is_refused(write: Callable[[Any], Any]) -> None:
    w = gg.ones(3, requires_grad=True)
    with pytest.raises(errors.AutogradError, match="is a leaf that requires a gradient"):
        write(w)
    with gg.no_grad():
        write(w)
    assert w.requires_grad


def test_a_view_of_a_leaf_is_refused() -> None:
    w = gg.ones(3, requires_grad=True)
    with pytest.raises(errors.AutogradError, match="a view of a leaf"):
        w[1:].mul_(2)
    with pytest.raises(errors.AutogradError, match="a view of a leaf"):
        w.view(3, 1)[0][0] = 1


def test_shapes_and_dtypes_that_do_not_fit() -> None:
    x = gg.zeros(2, 1)
    with pytest.raises(errors.ShapeError, match=r"result has shape \(2, 3\)"):
        x.add_(gg.ones(3))
    with pytest.raises(errors.KindError, match="does not fit into a tensor of dtype int64"):
        gg.tensor([1, 2]).mul_(1.5)
    with pytest.raises(errors.ShapeError):
        x[0] = gg.ones(2)
    assert x.tolist() == [[0.0], [0.0]]


def test_a_gradient_does_not_get_lost_in_integers() -> None:
    counts = gg.zeros(2, dtype=gg.int64)
    w = gg.ones(2, requires_grad=True)
    with pytest.raises(errors.AutogradError, match="cannot keep one"):
        counts[0] = w[0]
    with pytest.raises(errors.AutogradError, match="cannot keep one"):
        counts.add_(w)


def test_expanded_memory_is_refused() -> None:
    x = gg.ones(1, 3).expand(2, 3)
    with pytest.raises(errors.AutogradError, match="expanded tensor"):
        x.add_(1)
    with pytest.raises(errors.AutogradError, match="expanded tensor"):
        x[0] = 1


def test_ndarray_in_place_with_a_tensor_keeps_or_refuses_the_gradient() -> None:
    array = np.ones(2)
    array += gg.tensor([1.0, 2.0])
    assert array.tolist() == [2.0, 3.0]
    with pytest.raises(errors.KindError, match=r"np.add\(out=...\) is not possible"):
        array += gg.ones(2, requires_grad=True)
    with pytest.raises(errors.KindError, match="converting to a NumPy array would drop the gradient"):
        array[:] = gg.ones(2, requires_grad=True) * 2
    assert array.tolist() == [2.0, 3.0]


def test_the_version_check_names_both_places() -> None:
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    h = x * 2
    y = h.exp()
    y += 1
    with pytest.raises(errors.AutogradError) as caught:
        y.sum().backward()
    text = str(caught.value)
    assert "'y' was saved by exp at" in text
    assert text.count("test_inplace.py:") == 2


def test_the_version_check_sees_writes_through_views_and_under_no_grad() -> None:
    x = gg.tensor(real(3), requires_grad=True)
    for write in (lambda h: h[0:1].zero_(), lambda h: h.detach().add_(1)):
        h = x * 2
        y = (h * h).sum()
        with gg.no_grad():
            write(h)
        with pytest.raises(errors.AutogradError, match="overwritten in place"):
            y.backward()


def test_what_no_rule_reads_may_be_overwritten() -> None:
    x = gg.tensor(real(4), requires_grad=True)
    h = x * 2
    row, picked, joined = h[1:3], h[gg.tensor([0, 0])], gg.cat([h, h])
    total = (h / 4).sum() + row.sum() + picked.sum() + joined.sum() + h.sum()
    h.mul_(3)
    total.backward()
    np.testing.assert_allclose(x.grad.numpy(), [2 * (3.25 + 2), 2 * 4.25, 2 * 4.25, 2 * 3.25])
