"""Equal random numbers under both libraries: `attach` replaces their draws by NumPy's, keyed by kind and shape.

Each drawing function is still called, with the program's arguments; its result is then overwritten. The n-th draw of a
kind and a shape is the same under both libraries, regardless of other draws in between. Initial weights of layers are
also keyed by the layer's class and the parameter's name.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Values = np.ndarray
CONTAINERS = {
    "Module",
    "Sequential",
    "ModuleList",
    "ModuleDict",
    "ParameterList",
    "ParameterDict",
    "Container",
    "DataParallel",
}


class Source:
    """Draws, keyed; while `inside` counts a call of the library's own, draws within it take no key."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.counts: Counter[Any] = Counter()
        self.inside = 0

    def generator(self, *key: Any) -> np.random.Generator:
        """Return the generator of the next draw under a key."""
        if self.inside:
            return np.random.default_rng(0)
        self.counts[key] += 1
        return np.random.default_rng([zlib.crc32(repr(key).encode()), self.counts[key]])

    def uniform(self, shape: Any) -> Values:
        """Numbers in [0, 1)."""
        shape = tuple(int(size) for size in shape)
        return self.generator("uniform", shape).random(shape)

    def normal(self, shape: Any) -> Values:
        """Standard normal numbers."""
        shape = tuple(int(size) for size in shape)
        return self.generator("normal", shape).standard_normal(shape)

    def order(self, count: int) -> Values:
        """A permutation."""
        return self.generator("order", count).permutation(count)

    def fill(self, tensor: Any, values: Any) -> Any:
        """Overwrite a tensor."""
        if self.inside:
            return tensor
        values = np.array(np.broadcast_to(values, tuple(tensor.shape)))
        with self.torch.no_grad():
            tensor.copy_(self.torch.from_numpy(values).to(tensor.dtype))
        return tensor

    @contextmanager
    def own(self) -> Iterator[None]:
        """Within, the library draws for itself."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1


def array(value: Any) -> Values:
    """Return the numbers of a tensor or a number as an array."""
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value, dtype=np.float64)


def replaced(owner: Any, name: str, values: Callable[..., Any], source: Source) -> None:
    """Overwrite the results of a function or method by `values(result, *arguments)`."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original, updated=())
    def drawing(*arguments: Any, **options: Any) -> Any:
        with source.own():
            result = original(*arguments, **options)
        return result if source.inside else source.fill(result, values(result, *arguments, **options))

    setattr(owner, name, drawing)
    names = getattr(sys.modules.get("glassgrad.engine.public"), "NAMES", {})
    if owner is source.torch and name in names:  # the front takes its names from there again
        names[name] = drawing


# --- functions and methods ------------------------------------------------------------------------


def bounds(*arguments: Any, **options: Any) -> tuple[int, int]:
    """Return the bounds in the arguments of `randint` and `random_`."""
    numbers = [one for one in arguments if isinstance(one, int | np.integer)]
    low = options.get("low", numbers[0] if len(numbers) > 1 else 0)
    high = options.get("high", numbers[1] if len(numbers) > 1 else (numbers[0] if numbers else None))
    return int(low or 0), 1 << 24 if high is None else int(high)


def functions(torch: Any, source: Source) -> None:
    """Replace the functions of the module."""

    def whole(result: Any, *arguments: Any, **options: Any) -> Values:
        low, high = bounds(*arguments, **options)
        return np.floor(low + source.uniform(result.shape) * (high - low))

    def gauss(result: Any, mean: Any = 0.0, std: Any = 1.0, *_size: Any, **_options: Any) -> Values:
        return array(mean) + array(std) * source.normal(result.shape)

    for name in ("rand", "rand_like"):
        replaced(torch, name, lambda result, *_a, **_o: source.uniform(result.shape), source)
    for name in ("randn", "randn_like"):
        replaced(torch, name, lambda result, *_a, **_o: source.normal(result.shape), source)
    for name in ("randint", "randint_like"):
        replaced(torch, name, whole, source)
    replaced(torch, "randperm", lambda result, *_a, **_o: source.order(len(result)), source)
    replaced(torch, "normal", gauss, source)

    def chosen(result: Any, weights: Any, *_arguments: Any, **options: Any) -> Values:
        rows = np.atleast_2d(array(weights))
        count = int(result.shape[-1])
        again = options.get("replacement", _arguments[1] if len(_arguments) > 1 else False)
        return choice(source, rows, count, bool(again)).reshape(tuple(result.shape))

    def heads(result: Any, chance: Any, p: Any = None, **_options: Any) -> Values:
        return source.uniform(result.shape) < array(chance if p is None else p)

    for owner in (torch, torch.Tensor):
        replaced(owner, "multinomial", chosen, source)
        replaced(owner, "bernoulli", heads, source)


def choice(source: Source, rows: Values, count: int, again: bool) -> Values:
    """Draw columns by the weights of each row, with or without replacement."""
    if again:
        shares = np.cumsum(rows, -1) / rows.sum(-1, keepdims=True)
        spots = source.uniform((len(rows), count))
        return (spots[:, :, None] >= shares[:, None, :-1]).sum(-1)
    with np.errstate(divide="ignore"):  # the first arrivals of exponential clocks
        arrivals = -np.log1p(-source.uniform(rows.shape)) / rows
    return np.argsort(arrivals, -1, kind="stable")[:, :count]


def methods(torch: Any, source: Source) -> None:
    """Replace the methods that overwrite a tensor with random numbers."""

    def normal(result: Any, _tensor: Any, mean: float = 0.0, std: float = 1.0, **_options: Any) -> Values:
        return mean + std * source.normal(result.shape)

    def uniform(result: Any, _tensor: Any, a: float = 0.0, b: float = 1.0, **options: Any) -> Values:
        low, high = options.get("from", a), options.get("to", b)
        return low + (high - low) * source.uniform(result.shape)

    def whole(result: Any, _tensor: Any, *arguments: Any, **options: Any) -> Values:
        low, high = bounds(*arguments, **options)
        return np.floor(low + source.uniform(result.shape) * (high - low))

    def heads(result: Any, _tensor: Any, p: Any = 0.5, **_options: Any) -> Values:
        return source.uniform(result.shape) < array(p)

    def waits(result: Any, _tensor: Any, lambd: float = 1.0, **_options: Any) -> Values:
        return -np.log1p(-source.uniform(result.shape)) / lambd

    for name, values in {
        "normal_": normal,
        "uniform_": uniform,
        "random_": whole,
        "bernoulli_": heads,
        "exponential_": waits,
    }.items():
        replaced(torch.Tensor, name, values, source)


# --- weights --------------------------------------------------------------------------------------


def fans(tensor: Any) -> tuple[int, int]:
    """Return the numbers of inputs and outputs of one weight."""
    shape = tuple(tensor.shape)
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def initial(torch: Any, source: Source) -> None:
    """Replace the functions of `nn.init`."""
    for name, values in (scaled(torch.nn.init, source) | given(source)).items():
        replaced(torch.nn.init, name, values, source)


def scaled(init: Any, source: Source) -> dict[str, Callable[..., Values]]:
    """Return the values of those whose scale comes from the shape."""
    both, third = (lambda shape: 2 * source.uniform(shape) - 1), math.sqrt(3)

    def kaiming(draw: Callable[[Any], Values], scale: float) -> Callable[..., Values]:
        def values(
            _r: Any, tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", **_options: Any
        ) -> Values:
            gain = float(init.calculate_gain(nonlinearity, a))
            return scale * gain / math.sqrt(fans(tensor)[mode == "fan_out"]) * draw(tensor.shape)

        return values

    def xavier(draw: Callable[[Any], Values], scale: float) -> Callable[..., Values]:
        def values(_result: Any, tensor: Any, gain: float = 1.0, **_options: Any) -> Values:
            return scale * gain * math.sqrt(2 / sum(fans(tensor))) * draw(tensor.shape)

        return values

    return {
        "xavier_uniform_": xavier(both, third),
        "xavier_normal_": xavier(source.normal, 1.0),
        "kaiming_uniform_": kaiming(both, third),
        "kaiming_normal_": kaiming(source.normal, 1.0),
    }


def given(source: Source) -> dict[str, Callable[..., Values]]:
    """Return the values of those whose scale is given."""

    def uniform(_result: Any, tensor: Any, a: float = 0.0, b: float = 1.0, **_options: Any) -> Values:
        return a + (b - a) * source.uniform(tensor.shape)

    def normal(_result: Any, tensor: Any, mean: float = 0.0, std: float = 1.0, **_options: Any) -> Values:
        return mean + std * source.normal(tensor.shape)

    def cut(
        _result: Any, tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, **_o: Any
    ) -> Values:
        return np.clip(mean + std * source.normal(tensor.shape), a, b)

    def orthogonal(_result: Any, tensor: Any, gain: float = 1.0, **_options: Any) -> Values:
        rows, columns = int(tensor.shape[0]), math.prod(tensor.shape[1:])
        found = np.linalg.qr(source.normal((max(rows, columns), min(rows, columns))))[0]
        return gain * (found if rows >= columns else found.T).reshape(tuple(tensor.shape))

    return {"uniform_": uniform, "normal_": normal, "trunc_normal_": cut, "orthogonal_": orthogonal}


def weights(source: Source, layer: Any) -> None:
    """Overwrite the parameters of a layer, and of those inside it, that were drawn."""
    for module in layer.modules():
        kind = type(module).__name__.replace("NonDynamicallyQuantizable", "")
        if kind in {"MultiheadAttention", "LSTM", "GRU", "RNN"}:
            module.dropout = 0.0  # drawn inside of kernels, out of reach
        own = dict(module.named_parameters(recurse=False))
        wide = [tuple(value.shape) for value in own.values() if not hasattr(value, "materialize") and value.dim() > 1]
        for name, parameter in own.items():
            if hasattr(parameter, "materialize"):
                continue
            before = array(parameter)
            if before.size == 0 or (before.size > 1 and before.min() == before.max()):
                continue  # zeros or ones
            if before.size == 1 and float(before.reshape(-1)[0]) in {0.0, 0.25, 1.0}:
                continue
            shape = tuple(parameter.shape)
            generator = source.generator("parameter", kind, name, shape)
            if kind in {"Embedding", "EmbeddingBag"}:
                values = generator.standard_normal(shape)
                if getattr(module, "padding_idx", None) is not None:
                    values[module.padding_idx] = 0
            else:
                inputs = getattr(module, "hidden_size", 0) or math.prod((wide or [shape])[0][1:])
                values = generator.uniform(-1, 1, shape) / math.sqrt(max(inputs, 1))
            source.fill(parameter, values)


def layers(torch: Any, source: Source) -> None:
    """Have the weights of layers overwritten after each is made, or made anew."""

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def making(layer: Any, *arguments: Any, **options: Any) -> Any:
            with source.own():
                result = original(layer, *arguments, **options)
            if not source.inside:
                weights(source, layer)
            return result

        return making

    for name in sorted(dir(torch.nn)):
        kind = getattr(torch.nn, name)
        if not isinstance(kind, type) or not issubclass(kind, torch.nn.Module) or name in CONTAINERS:
            continue
        for owner, method in itertools.product(kind.__mro__, ("__init__", "reset_parameters")):
            own = owner.__name__ not in CONTAINERS and issubclass(owner, torch.nn.Module) and method in vars(owner)
            if own and not hasattr(vars(owner)[method], "__wrapped__"):
                setattr(owner, method, wrapped(vars(owner)[method]))


# --- dropout, data, distributions -----------------------------------------------------------------


def dropout(torch: Any, source: Source) -> None:
    """Replace dropout, of single numbers and of channels."""
    functional = torch.nn.functional

    def kept(x: Any, p: float, channels: bool) -> Any:
        shape = tuple(x.shape)[:2] + (1,) * (x.dim() - 2) if channels else tuple(x.shape)
        mask = (source.uniform(shape) >= p) / (1 - p) if p < 1 else np.zeros(shape)
        return x * torch.from_numpy(np.asarray(mask)).to(x.dtype)

    def function(name: str, channels: bool) -> Any:
        original = getattr(functional, name)

        @functools.wraps(original)
        def dropped(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if not training or p == 0 or source.inside:
                return original(input, p, training, inplace)
            return kept(input, p, channels)

        return dropped

    for name, layer, channels in (
        ("dropout", "Dropout", False),
        ("dropout1d", "Dropout1d", True),
        ("dropout2d", "Dropout2d", True),
        ("dropout3d", "Dropout3d", True),
    ):
        made = function(name, channels)
        setattr(functional, name, made)

        def forward(module: Any, input: Any, made: Any = made) -> Any:
            return made(input, module.p, module.training, module.inplace)

        getattr(torch.nn, layer).forward = forward

    def gumbel(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
        noise = -np.log(-np.log(source.uniform(logits.shape) + 1e-20) + 1e-20)
        soft = ((logits + torch.from_numpy(np.asarray(noise)).to(logits.dtype)) / tau).softmax(dim)
        if not hard:
            return soft
        one = torch.zeros_like(logits).scatter_(dim, soft.max(dim, keepdim=True)[1], 1.0)
        return one - soft.detach() + soft

    functional.gumbel_softmax = gumbel


def attention(torch: Any, _source: Source) -> None:
    """Leave out the dropout inside of attention, which kernels draw."""
    original = torch.nn.functional.scaled_dot_product_attention

    @functools.wraps(original)
    def attend(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *more: Any, **options: Any
    ) -> Any:
        return original(query, key, value, attn_mask, 0.0, *more, **options)

    torch.nn.functional.scaled_dot_product_attention = attend


def data(torch: Any, source: Source) -> None:
    """Replace the orders of samplers and random splits."""
    room = torch.utils.data

    def order(sampler: Any) -> Iterator[int]:
        size = len(sampler.data_source)
        if sampler.replacement:
            found = np.floor(source.uniform((sampler.num_samples,)) * size).astype(int)
        else:
            rounds = -(-sampler.num_samples // size)
            found = np.concatenate([source.order(size) for _ in range(rounds)])[: sampler.num_samples]
        return iter(found.tolist())

    def subset(sampler: Any) -> Iterator[int]:
        return iter([sampler.indices[at] for at in source.order(len(sampler.indices)).tolist()])

    room.RandomSampler.__iter__ = order
    room.RandomSampler.indices = lambda sampler, _seed: np.array(list(order(sampler)))  # what loaders of glassgrad ask
    room.RandomSampler.stream = lambda sampler, _seed: order(sampler)
    room.SubsetRandomSampler.__iter__ = subset
    original = room.random_split

    @functools.wraps(original)
    def split(dataset: Any, lengths: Any, *arguments: Any, **options: Any) -> Any:
        with source.own():
            parts = original(dataset, lengths, *arguments, **options)
        found, start = source.order(len(dataset)).tolist(), 0
        for part in parts:
            part.indices = found[start : start + len(part)]
            start += len(part)
        return parts

    room.random_split = split


def distributions(torch: Any, source: Source) -> None:
    """Replace the draws of the usual distributions."""

    def still(draw: Callable[..., Any]) -> Callable[..., Any]:
        def sample(given: Any, sample_shape: Any = ()) -> Any:
            with torch.no_grad():
                return draw(given, tuple(sample_shape))

        return sample

    for name, draw in smooth(torch, source).items():
        kind = getattr(torch.distributions, name)
        kind.rsample, kind.sample = draw, still(draw)
    for name, draw in discrete(torch, source).items():
        getattr(torch.distributions, name).sample = still(draw)


def full(given: Any, shape: Any) -> tuple[int, ...]:
    """Return the shape of a distribution's sample."""
    return (*shape, *given.batch_shape, *given.event_shape)


def smooth(torch: Any, source: Source) -> dict[str, Callable[..., Any]]:
    """Return draws that have a gradient."""

    def tensor(values: Values, like: Any) -> Any:
        return torch.from_numpy(np.asarray(values)).to(like.dtype)

    def normal(given: Any, sample_shape: Any = ()) -> Any:
        return given.loc + given.scale * tensor(source.normal(full(given, sample_shape)), given.loc)

    def uniform(given: Any, sample_shape: Any = ()) -> Any:
        return given.low + (given.high - given.low) * tensor(source.uniform(full(given, sample_shape)), given.low)

    def several(given: Any, sample_shape: Any = ()) -> Any:
        noise = tensor(source.normal(full(given, sample_shape)), given.loc)
        return given.loc + (given.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    return {"Normal": normal, "Uniform": uniform, "MultivariateNormal": several}


def discrete(torch: Any, source: Source) -> dict[str, Callable[..., Any]]:
    """Return draws without one."""

    def category(given: Any, sample_shape: Any = ()) -> Any:
        rows = array(given.probs).reshape(-1, given.probs.shape[-1])
        found = choice(source, rows, max(math.prod(sample_shape), 1), again=True).T
        return torch.from_numpy(np.ascontiguousarray(found)).reshape((*sample_shape, *given.batch_shape))

    def heads(given: Any, sample_shape: Any = ()) -> Any:
        found = source.uniform(full(given, sample_shape)) < array(given.probs)
        return torch.from_numpy(np.asarray(found)).to(given.probs.dtype)

    return {"Categorical": category, "Bernoulli": heads}


def attach(torch: Any) -> None:
    """Replace all draws of a library by keyed ones."""
    source = Source(torch)
    for part in (functions, methods, initial, layers, dropout, attention, data, distributions):
        part(torch, source)
