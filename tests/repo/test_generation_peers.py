"""The peers of the benchmark `generate` draw the same texts: ours, PyTorch's and the loop in C."""

from __future__ import annotations

import importlib

import pytest

from benchmarks import worker
from benchmarks.generation import WORKLOAD


@pytest.mark.parametrize(
    "target", [target for target in WORKLOAD.peers.values() if not target.endswith((":compile", "glassgrad_peer"))]
)
def test_a_peer_draws_what_we_draw(target: str) -> None:
    module, _, mode = target.partition(":")
    ours = importlib.import_module(f"{WORKLOAD.package}.glassgrad_peer").build("")
    try:
        theirs = importlib.import_module(f"{WORKLOAD.package}.{module}").build(mode)
    except ModuleNotFoundError as error:
        pytest.skip(worker.missing(error) or str(error))
    for _ in range(3):
        assert theirs(1) == ours(1)
