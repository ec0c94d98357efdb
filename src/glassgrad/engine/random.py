"""Random numbers: a seedable Generator and the functions that draw from one.

Every draw goes through a `Generator`, so a run is repeatable, can be resumed from the generator's state, and gives the
same numbers under compilation.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from glassgrad.base import provenance
from glassgrad.engine.mode import MODE, TRACING
from glassgrad.engine.tensor import Tensor, make
from glassgrad.engine.tensors import creation, devices
from glassgrad.engine.tensors.creation import _finish, _size
from glassgrad.engine.tensors.devices import Device, DType
from glassgrad.ops.complex_input import refuse_complex
from glassgrad.ops.core import Array, bad_option
from glassgrad.ops.vmap.batched import Stream

GENERATORS: weakref.WeakSet[Generator] = weakref.WeakSet()


class _Uses:
    """Counts the uses of all generators: while the number is unchanged, so are their states."""

    count = 0


USES = _Uses()


class Generator:
    """A stream of random numbers (NumPy's PCG64) with PyTorch's methods.

    Example:
        >>> import glassgrad as gg
        >>> g = gg.Generator().manual_seed(1)
        >>> state = g.get_state()
        >>> a = gg.rand(3, generator=g)
        >>> g.set_state(state)
        >>> bool((gg.rand(3, generator=g) == a).all())
        True
    """

    def __init__(self, device: Device = None) -> None:
        devices.check(device)
        self._seed: int | None = None
        self._rng: np.random.Generator | None = None
        self.unseeded: tuple[CodeType, int] | None = None  # the place of its first draw without a seed from the user
        self._chosen = False
        USES.count += 1
        GENERATORS.add(self)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to `seed`; return self."""
        seed = int(seed)
        self._chosen, self.unseeded = True, None
        if MODE.flags & TRACING and MODE.replay is not None:
            MODE.replay(partial(self._start, seed), self)
        else:
            self._start(seed)
        return self

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._rng = None
        USES.count += 1

    @property
    def rng(self) -> np.random.Generator:
        """NumPy's generator, made on first access, because importing `numpy.random` takes a while."""
        USES.count += 1
        if self._rng is None and not self._chosen:
            frame = provenance.user_frame()
            self.unseeded = frame.f_code, frame.f_lasti
        return self._made()

    def _made(self) -> np.random.Generator:
        if self._rng is None:
            self._rng = np.random.Generator(np.random.PCG64(None if self._seed is None else self._seed % (1 << 64)))
        return self._rng

    def initial_seed(self) -> int:
        """Return the last given seed, 0 if there was none."""
        return self._seed or 0

    def get_state(self) -> dict[str, Any]:
        """Return the state as a dictionary of plain numbers that JSON can hold.

        During tracing it is empty; every call of the compiled step fills it at this point.
        """
        if MODE.flags & TRACING and MODE.replay is not None:
            state: dict[str, Any] = {}
            MODE.replay(lambda: state.update(self.rng.bit_generator.state), self)
            return state
        return dict(self.rng.bit_generator.state)

    def set_state(self, state: dict[str, Any]) -> None:
        """Return to a state from `get_state`."""
        self._chosen, self.unseeded = True, None
        if MODE.flags & TRACING and MODE.replay is not None:
            MODE.replay(lambda: self._go_back(state), self)
        else:
            self._go_back(state)

    def _go_back(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state


default_generator = Generator()
default_generator._start(0)


def get_states() -> dict[Generator, dict[str, Any]]:
    """Return the states of all generators, so that a computation can be repeated exactly."""
    return {generator: dict(generator._made().bit_generator.state) for generator in GENERATORS}


def set_states(states: Mapping[Generator, dict[str, Any]]) -> None:
    """Return to states from `get_states`."""
    for generator, state in states.items():
        generator._go_back(state)


def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


def _rng(generator: Generator | None) -> Any:
    generator = generator or default_generator
    # During tracing, MODE.draws is always set.
    stream = MODE.draws(generator) if MODE.flags & TRACING and MODE.draws is not None else generator.rng
    return Stream(stream, MODE.levels) if MODE.levels else stream


def _of_parts(draw: Callable[..., Any], rng: np.random.Generator, size: tuple[int, ...], dtype: np.dtype) -> Array:
    """Draw complex numbers; both parts have the same distribution."""
    parts = draw(rng, (*size, 2), np.float32 if dtype == np.complex64 else np.float64)
    return (parts[..., 0] + parts[..., 1] * dtype.type(1j)).astype(dtype)


def _uniform(rng: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    wanted = np.dtype(dtype or creation.DEFAULT)
    if wanted.kind == "c":
        return _of_parts(_uniform, rng, size, wanted)
    drawn = rng.random(size, dtype=np.float32 if wanted == np.float32 else np.float64)
    return drawn.astype(wanted, copy=False)


def _normal(rng: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    wanted = np.dtype(dtype or creation.DEFAULT)
    if wanted.kind == "c":  # both parts together have variance 1
        return _of_parts(_normal, rng, size, wanted) * math.sqrt(0.5)
    drawn = rng.standard_normal(size, dtype=np.float32 if wanted == np.float32 else np.float64)
    return drawn.astype(wanted, copy=False)


@devices.on_the_processor
def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Uniform numbers in [0, 1)."""
    return _finish(_uniform(_rng(generator), _size(sizes, size), dtype), requires_grad, device)


@devices.on_the_processor
def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Standard normal numbers."""
    return _finish(_normal(_rng(generator), _size(sizes, size), dtype), requires_grad, device)


@devices.on_the_processor
def randint(
    low: Any = None,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Integers from `low` to `high`, without `high`; `randint(high, size)` starts at 0."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    low = 0 if low is None else low
    if high is None or size is None:
        raise bad_option("randint", "size" if high is not None else "high", None, "a bound and a shape")
    if isinstance(high, int) and low >= high:
        raise bad_option("randint", "high", high, f"more than low={low}")
    wanted = np.dtype(dtype or np.int64)
    drawn = _rng(generator).integers(low, high, _size((size,)), dtype=wanted if wanted.kind in "iu" else np.int64)
    return _finish(drawn.astype(wanted, copy=False), requires_grad, device)


@devices.on_the_processor
def randperm(n: int, *, generator: Generator | None = None, dtype: DType = None, device: Device = None) -> Tensor:
    """The integers below `n` in random order."""
    if n < 0:
        raise bad_option("randperm", "n", n, "0 or more")
    order = _rng(generator).permutation(n)
    return _finish(order if dtype is None else order.astype(dtype), False, device)


def normal(
    mean: Array = 0.0,
    std: Array = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Normal numbers; the shape is `size` or that of `mean` and `std`; the dtype is that of the first of them."""
    refuse_complex("normal", (mean, std))
    given = [x.dtype for x in (mean, std) if isinstance(x, Tensor) and x.dtype.kind in "fV"]
    dtype = dtype or (given[0] if given else creation.DEFAULT)
    plain = [x.detach().array if isinstance(x, Tensor) else np.asarray(x) for x in (mean, std)]
    if type(plain[1]) is np.ndarray and (plain[1] < 0).any():
        raise bad_option("normal", "std", plain[1].min().item(), "0 or more")
    shape = _size((size,)) if size is not None else np.broadcast_shapes(plain[0].shape, plain[1].shape)
    drawn = _normal(_rng(generator), shape, dtype)
    return _finish((plain[0] + plain[1] * drawn).astype(dtype), requires_grad, device)


def bernoulli(input: Array, *, generator: Generator | None = None) -> Tensor:
    """1 with probability `input` elementwise, else 0, in the dtype of `input`."""
    refuse_complex("bernoulli", (input,))
    array = input.detach().array if isinstance(input, Tensor) else np.asarray(input, creation.DEFAULT)
    if type(array) is np.ndarray and not ((array >= 0) & (array <= 1)).all():
        given = array[~((array >= 0) & (array <= 1))][0].item()
        raise bad_option("bernoulli", "input", given, "probabilities between 0 and 1")
    return make((_rng(generator).random(array.shape) < array).astype(array.dtype), None, False)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draw indices of the last dimension with the given weights (which need not add up to 1)."""
    refuse_complex("multinomial", (input,))
    if num_samples < 1 or not 1 <= len(input.shape) <= 2:
        expected = f"at least 1, with weights of one dimension or two, given {len(input.shape)}"
        raise bad_option("multinomial", "num_samples", num_samples, expected)
    rng = _rng(generator)
    if MODE.levels:
        return _multinomial_in_vmap(input.detach(), num_samples, replacement, rng)
    if type(input.array) is not np.ndarray:
        return _multinomial_traced(input.detach(), num_samples, replacement, rng)
    weights = input.detach().array.astype(np.float64)
    rows = weights.reshape(-1, weights.shape[-1])
    edges = np.cumsum(rows, axis=-1)
    # A sum that is finite and positive, of numbers that are not negative, has no useless row.
    if not (rows.min(initial=0) >= 0 and edges[:, -1].min(initial=1) > 0 and edges[:, -1].max(initial=1) < np.inf) and (
        _useless(rows).any()
    ):
        expected = "finite weights, none negative and not all zero in a row"
        raise bad_option("multinomial", "input", rows[_useless(rows)][0].tolist(), expected)
    if replacement or num_samples == 1:
        marks = rng.random((len(rows), num_samples)) * edges[:, -1:]
        drawn = (marks[:, :, None] >= edges[:, None, :]).sum(-1)
        drawn = np.minimum(drawn, weights.shape[-1] - 1)
    else:
        if num_samples > weights.shape[-1]:
            expected = f"at most {weights.shape[-1]}, or replacement=True"
            raise bad_option("multinomial", "num_samples", num_samples, expected)
        # Each class gets an exponential clock and the smallest wins: Efraimidis and Spirakis 2006.
        clocks = rng.exponential(size=rows.shape) / np.maximum(rows, 1e-300)
        drawn = np.argsort(clocks, axis=-1)[:, :num_samples]
    return make(drawn.reshape((*weights.shape[:-1], num_samples)), None, False)


def _multinomial_traced(weights: Tensor, num_samples: int, replacement: bool, rng: np.random.Generator) -> Tensor:
    """`multinomial` written in ops, for weights computed in a step: the same numbers from the same draws."""
    rows = weights.reshape(-1, weights.shape[-1]).to(np.float64)
    if replacement or num_samples == 1:
        edges = rows.cumsum(-1)
        marks = make(rng.random((rows.shape[0], num_samples)), None, False) * edges[:, -1:]
        drawn = (marks.unsqueeze(-1) >= edges.unsqueeze(1)).sum(-1).clamp(max=weights.shape[-1] - 1)
    else:
        clocks = make(rng.exponential(size=tuple(rows.shape)), None, False) / rows.clamp(min=1e-300)
        drawn = clocks.argsort(-1)[:, :num_samples]
    result: Tensor = drawn.reshape((*weights.shape[:-1], num_samples))
    return result


def _useless(rows: Any) -> Array:
    """Tell which rows of weights are invalid for drawing."""
    with np.errstate(invalid="ignore"):
        return (rows < 0).any(-1) | ~np.isfinite(rows).all(-1) | ~(rows.sum(-1) > 0)


def _multinomial_in_vmap(weights: Tensor, num_samples: int, replacement: bool, rng: np.random.Generator) -> Tensor:
    """`multinomial` in ops that can be batched: the smallest exponential clock wins, once or per draw."""
    *lead, classes = weights.shape
    weights = weights.clip(1e-30)  # so that an impossible class never wins
    if replacement:
        clocks = make(rng.exponential(size=(*lead, num_samples, classes)), None, False)
        drawn: Tensor = (clocks / weights.unsqueeze(-2)).argmin(-1)
        return drawn
    ordered: Tensor = (make(rng.exponential(size=tuple(weights.shape)), None, False) / weights).argsort(-1)
    first: Tensor = ordered[..., :num_samples]
    return first


def bernoulli_mask(keep: float, shape: tuple[int, ...], generator: Generator | None = None) -> Tensor:
    """Return booleans that are true with probability `keep`, for dropout."""
    drawn: Tensor = rand(shape, generator=generator) < keep
    return drawn


@devices.on_the_processor
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Uniform numbers with the shape and dtype of `input`."""
    dtype = dtype or input.dtype
    return rand(input.shape, generator=generator, dtype=dtype, requires_grad=requires_grad, device=device)


@devices.on_the_processor
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Standard normal numbers with the shape and dtype of `input`."""
    dtype = dtype or input.dtype
    return randn(input.shape, generator=generator, dtype=dtype, requires_grad=requires_grad, device=device)


@devices.on_the_processor
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType = None,
    requires_grad: bool = False,
    device: Device = None,
) -> Tensor:
    """Integers from `low` (0 with one number) up to and without `high`, with the shape and dtype of `input`."""
    low, high = (0, low) if high is None else (low, high)
    drawn = randint(low, high, input.shape, generator=generator, device=device).to(dtype or input.dtype)
    return drawn.requires_grad_(requires_grad)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_hints: object) -> Iterator[None]:
    """Restore the state of the default generator at the end of the block.

    Example:
        >>> import glassgrad as gg
        >>> with gg.random.fork_rng():
        ...     first = gg.rand(2)
        >>> gg.equal(gg.rand(2), first)
        True
    """
    state = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(state)


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator from the system; return the seed."""
    drawn = int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
    manual_seed(drawn)
    return drawn


def get_rng_state() -> dict[str, Any]:
    """Return the state of the default generator."""
    return default_generator.get_state()


def set_rng_state(new_state: dict[str, Any]) -> None:
    """Return to a state from `get_rng_state`."""
    default_generator.set_state(new_state)
