"""PyTorch's own test samples of layers and optimizers, as far as both libraries have them."""

from __future__ import annotations

import inspect
import itertools
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these tests")
LIMIT = 12  # samples of each module and mode
FILE = Path(__file__).resolve().parents[2] / "docs" / "layers.json"

# Encoder and decoder take modules of the other library; Transformer has both inside. Lazy ones have no weights.
LEFT_OUT = {"TransformerDecoder", "TransformerEncoder"}
# The samples of these save the random numbers that they are given as a buffer; the functions are compared.
LEFT_OUT |= {"FractionalMaxPool2d", "FractionalMaxPool3d"}


@cache
def tables() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return PyTorch's entries of modules and of optimizers by name; loading them takes each worker three seconds."""
    reason = "PyTorch's samples are not installed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = pytest.importorskip("torch.testing._internal.common_modules", reason=reason)
        optimizers = pytest.importorskip("torch.testing._internal.common_optimizers", reason=reason)
    by_name: dict[str, Any] = {}
    for info in modules.module_db:
        by_name.setdefault(info.module_cls.__name__, info)
    return by_name, {info.optim_cls.__name__: info for info in optimizers.optim_db}


def known() -> dict[str, list[str]]:
    """Return the names that both libraries have."""
    modules, optimizers = tables()
    some = set(modules) & set(nn.__all__) - LEFT_OUT
    return {
        "modules": sorted(name for name in some if not name.startswith("Lazy")),
        "optimizers": sorted(set(optimizers) & set(optim.__all__) - {"LBFGS", "Muon", "SparseAdam"}),
    }


TABLE = json.loads(FILE.read_text(encoding="utf-8"))

# Samples that ask for something that is not offered, by a part of the message or of their arguments.
NOT_OFFERED = ("complex", "nested", "sparse", "max_norm", "device='meta'")


def ours(value: Any) -> Any:
    """Turn a sample's argument into ours; None tells that it cannot be."""
    if isinstance(value, torch.Tensor):
        if value.is_sparse or value.is_nested or value.is_complex():
            raise LookupError("a tensor of another kind")
        return gg.tensor(value.detach().numpy(), requires_grad=value.requires_grad)
    if isinstance(value, tuple | list):
        return type(value)(ours(part) for part in value)
    if callable(value) and hasattr(nn.functional, getattr(value, "__name__", "")):
        return getattr(nn.functional, value.__name__)
    if isinstance(value, torch.nn.Module):
        raise LookupError("a module")  # noqa: TRY004 - what cannot be turned is passed over
    if isinstance(value, torch.dtype):
        return getattr(gg, str(value).removeprefix("torch."))
    return value


def tensors(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in tensors(part)]
    return [value] if hasattr(value, "detach") else []


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's advice
        yield


def samples(name: str, training: bool) -> list[Any]:
    info = tables()[0][name]
    drawn = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
    return list(itertools.islice(drawn, LIMIT))


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Any:
    """Compare what was run with docs/layers.json, which the page of layers is made from; --update-goldens writes."""

    def check(kind: str, name: str, entry: dict[str, int]) -> None:
        table = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        if request.config.getoption("--update-goldens"):
            table.setdefault(kind, {})[name] = entry
            ordered = {part: dict(sorted(table[part].items())) for part in sorted(table)}
            FILE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
            return
        assert table[kind].get(name) == entry, "--update-goldens with -n 0 writes it, if that is wanted"

    return check


def random(module: Any) -> bool:
    """Whether a module in training draws numbers, which differ between the libraries."""
    rates = [getattr(module, "p", 0), getattr(module, "dropout", 0)]
    drawing = type(module).__name__.startswith(("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU"))
    inside = any(isinstance(part, torch.nn.Dropout) and part.p > 0 for part in module.modules())
    return drawing or inside or (isinstance(rates[1], float) and rates[1] > 0)


def run_sample(name: str, sample: Any, training: bool) -> str:
    """Compare one sample; return "agrees", or why it was passed over."""
    made, call = sample.constructor_input, sample.forward_input
    keywords = {key: value for key, value in made.kwargs.items() if key != "device"}
    if call is None or any(word in repr((made.args, keywords)) for word in NOT_OFFERED):
        return "not offered"
    theirs = getattr(torch.nn, name)(*made.args, **keywords).train(training)
    if training and random(theirs):
        return "random"
    try:
        twin = getattr(nn, name)(*ours(made.args), **{key: ours(value) for key, value in keywords.items()})
    except LookupError:
        return "not offered"
    twin.train(training).load_state_dict(theirs.state_dict())
    compare(theirs, twin, call)
    return "agrees"


@pytest.mark.parametrize("name", TABLE["modules"])
def test_modules(name: str, recorded: Any) -> None:
    torch.manual_seed(0)
    both = ((sample, training) for training in (True, False) for sample in samples(name, training))
    counts = Counter(run_sample(name, sample, training) for sample, training in both)
    recorded("modules", name, dict(sorted(counts.items())))
    assert counts["agrees"] > 0


def compare(theirs: Any, twin: Any, call: Any) -> None:
    """Outputs, and gradients of everything, for one call."""
    args, keywords = ours(call.args), {key: ours(value) for key, value in call.kwargs.items()}
    expected = [y for y in tensors(theirs(*call.args, **call.kwargs)) if y is not None]
    found = tensors(twin(*args, **keywords))
    assert len(found) == len(expected)
    for y, other in zip(found, expected, strict=True):
        known = other.isfinite().numpy()  # samples may lie where the function is not defined
        np.testing.assert_allclose(y.detach().numpy()[known], other.detach().numpy()[known], rtol=3e-4, atol=3e-5)
    wanted = [other for other in expected if other.requires_grad and other.isfinite().all()]
    if not wanted:
        return
    sum((other * other).sum() for other in wanted).backward()
    pairs = zip(found, expected, strict=True)
    sum((y * y).sum() for y, other in pairs if other.requires_grad and other.isfinite().all()).backward()
    leaves = zip(
        [*tensors(args), *tensors([*keywords.values()])], tensors([*call.args, *call.kwargs.values()]), strict=True
    )
    gradients = [(x.grad, other.grad) for x, other in leaves if other.requires_grad and other.is_leaf]
    state = dict(theirs.named_parameters())
    gradients += [(p.grad, state[name].grad) for name, p in twin.named_parameters()]
    for g, other in gradients:
        if other is not None and other.isfinite().all():
            assert g is not None
            scale = max(1.0, float(np.abs(other.numpy()).max(initial=0)))
            np.testing.assert_allclose(g.numpy(), other.numpy(), rtol=2e-3, atol=1e-4 * scale)


def options_of(sample: Any) -> dict[str, Any] | None:
    """The options of a sample without switches for PyTorch's own kernels; None if it needs tensors as options."""
    options = dict(sample.kwargs)
    tensors_in = [options.get("lr"), *(options.get("betas") or ())]
    if options.pop("capturable", False) or any(isinstance(value, torch.Tensor) for value in tensors_in):
        return None
    return {key: value for key, value in options.items() if key not in {"foreach", "fused", "differentiable"}}


@pytest.mark.parametrize("name", TABLE["optimizers"])
def test_optimizers(name: str, recorded: Any) -> None:
    start = np.random.default_rng(0).normal(size=(4, 3))
    counts: Counter[str] = Counter()
    for sample in tables()[1][name].optim_inputs_func(device="cpu"):
        options = options_of(sample)
        if options is None or not set(options) <= set(inspect.signature(getattr(optim, name)).parameters):
            counts["not offered"] += 1
            continue
        results = []
        for library in (gg, torch):
            p = library.tensor(start, requires_grad=True)
            optimizer = getattr(library.optim, name)([p], **options)
            for at in range(10):
                optimizer.zero_grad()
                ((p - np.cos(at)) ** 2 * 0.5).sum().backward()
                optimizer.step()
            results.append(p.detach().numpy())
        np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-8, err_msg=str(options))
        counts["agrees"] += 1
    recorded("optimizers", name, dict(sorted(counts.items())))
    assert counts["agrees"] > 2


def test_the_table_has_a_row_for_each_that_both_libraries_have() -> None:
    told = "write the name with {} into docs/layers.json, then run with --update-goldens -n 0"
    assert {kind: sorted(rows) for kind, rows in TABLE.items()} == known(), told
