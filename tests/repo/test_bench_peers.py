"""Every peer of every workload computes the same training: the first losses, in this process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks import worker
from benchmarks.workloads import WORKLOADS
from glassgrad.compile.llvm.module.blas import blas

STEPS = 2
LIBRARY_OF = {
    "torch_peer": "torch",
    "jax_peer": "jax",
    "autograd_peer": "autograd",
    "scalar_peer:micrograd": "micrograd",
}
SLOW_TO_START = ("torch_peer:compile", "glassgrad_peer:numpy", "glassgrad_peer:llvm", "glassgrad_peer:mkl", "jax_peer",
                 "glassgrad_peer:float32", "scalar_peer:glassgrad", "c_peer")  # fmt: skip  # a table
# Large networks on few images, and objects for few points: what agrees for these agrees for all.
FEW_IMAGES = {"w6": 4, "w7": 4, "w8": 1, "w9": 4, "w10": 2, "w11": 2}
FEW_POINTS = {"w4": 10, "w12": 64}
MANY_LAYERS = ("w6", "w7", "w9", "w13")
WITH_WEIGHTS = (*FEW_IMAGES, "w12")
PAIRS = [
    pytest.param(key, target, marks=pytest.mark.slow if target.startswith(SLOW_TO_START) or key in MANY_LAYERS else ())
    for key, workload in WORKLOADS.items()
    for name, target in workload.peers.items()
    if name != workload.reference
]


def first_losses(key: str, target: str) -> list[float]:
    library = LIBRARY_OF.get(target, LIBRARY_OF.get(target.partition(":")[0]))
    if library:
        pytest.importorskip(library, reason="this peer is not installed")
    module, _, mode = target.partition(":")
    try:
        run = importlib.import_module(f"{WORKLOADS[key].package}.{module}").build(mode)
    except (AttributeError, ModuleNotFoundError) as error:
        if what := worker.missing(error):
            pytest.skip(what)
        raise
    run = getattr(run, "check", run)
    return [run(1) for _ in range(STEPS)]


@pytest.fixture(autouse=True)
def _few_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in (("BATCH", FEW_IMAGES | {"w13": 2}), ("POINTS", FEW_POINTS)):
        for key, count in few.items():
            monkeypatch.setattr(importlib.import_module(f"{WORKLOADS[key].package}.problem"), name, count)


@pytest.fixture(autouse=True)
def _own_choice_of_blas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GLASSGRAD_BLAS", "")  # what a peer chooses ends with its test
    yield
    monkeypatch.undo()
    blas.cache_clear()


@pytest.fixture(scope="module")
def reference() -> dict[str, list[float]]:
    return {}


# What PyTorch's compiler says of itself.
@pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize(("key", "target"), PAIRS)
def test_losses_agree_with_the_reference(key: str, target: str, reference: dict[str, list[float]]) -> None:
    workload = WORKLOADS[key]
    if key not in reference:
        reference[key] = first_losses(key, workload.peers[workload.reference])
    expected = reference[key]
    assert len(set(expected)) == STEPS, "the loss does not move: a comparison would show nothing"
    assert first_losses(key, target) == pytest.approx(expected, rel=workload.tolerance)


WEIGHTS = [
    pytest.param(key, target, marks=pytest.mark.slow)
    for key in WITH_WEIGHTS
    for target in ("jax_peer", "glassgrad_peer:eager", "glassgrad_peer:llvm")
]


@pytest.mark.parametrize(("key", "target"), WEIGHTS)
def test_weights_agree_after_one_step(key: str, target: str) -> None:
    """The state that a step leaves, running statistics too: each array to a twentieth of how far the step moved it."""
    if target == "jax_peer":
        pytest.importorskip("jax", reason="this peer is not installed")
    package = WORKLOADS[key].package
    module, _, mode = target.partition(":")
    states = []
    for name, how in (("torch_peer", "eager"), (module, mode)):
        run = importlib.import_module(f"{package}.{name}").build(how)
        before = run.weights()
        run(1)
        states.append(run.weights())
    assert states[0].keys() == states[1].keys()
    for name, value in states[0].items():
        moved, apart = np.linalg.norm(value - before[name]), np.linalg.norm(states[1][name] - value)
        assert apart <= 0.05 * moved + 1e-6 * np.sqrt(value.size), name
