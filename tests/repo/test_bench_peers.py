"""Every peer of every workload computes the same training: the first losses, in this process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from benchmarks import worker
from benchmarks.workloads import WORKLOADS
from glassgrad.compile.llvm.blas import blas

STEPS = 2
LIBRARY_OF = {
    "torch_peer": "torch",
    "jax_peer": "jax",
    "autograd_peer": "autograd",
    "scalar_peer:micrograd": "micrograd",
}
SLOW_TO_START = ("torch_peer:compile", "glassgrad_peer:numpy", "glassgrad_peer:llvm", "glassgrad_peer:mkl", "jax_peer")
PAIRS = [
    pytest.param(key, target, marks=pytest.mark.slow if target.startswith(SLOW_TO_START) else ())
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
    return [run(1) for _ in range(STEPS)]


@pytest.fixture(autouse=True)
def _own_choice_of_blas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GLASSGRAD_BLAS", "")  # what a peer chooses ends with its test
    yield
    monkeypatch.undo()
    blas.cache_clear()


@pytest.fixture(scope="module")
def reference() -> dict[str, list[float]]:
    return {}


@pytest.mark.parametrize(("key", "target"), PAIRS)
def test_losses_agree_with_the_reference(key: str, target: str, reference: dict[str, list[float]]) -> None:
    workload = WORKLOADS[key]
    if key not in reference:
        reference[key] = first_losses(key, workload.peers[workload.reference])
    expected = reference[key]
    assert len(set(expected)) == STEPS, "the loss does not move: a comparison would show nothing"
    assert first_losses(key, target) == pytest.approx(expected, rel=workload.tolerance)
