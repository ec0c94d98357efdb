"""Counts that keep compiling fast: no code is written twice, and none that is already on disk."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn
from glassgrad.compile import stages
from glassgrad.compile.front.state.reach import reach
from glassgrad.compile.ir import passes
from glassgrad.compile.ir.graph import Graph, GraphBuilder
from glassgrad.compile.llvm.module.blas import Blas
from tests.compile.graphs import lower


@pytest.fixture
def own_products(monkeypatch):
    """Matrix products by our own code, whatever this machine would choose."""
    monkeypatch.setattr("glassgrad.compile.llvm.module.solid.blas", lambda: Blas("own", {}))
    monkeypatch.setattr("glassgrad.compile.native.cache_entry.blas", lambda: Blas("own", {}))


def products(*sizes: tuple[int, int, int], transposed: bool = False) -> Graph:
    """One product (m, k) @ (k, n) for each of the sizes (m, k, n)."""
    builder = GraphBuilder()
    found = []
    for m, k, n in sizes:
        left, right = builder.input((m, k)), builder.input((n, k) if transposed else (k, n))
        if transposed:
            right = builder.apply("permute_dims", [right], (k, n), np.float32, {"axes": (1, 0)})
        found.append(builder.apply("matmul", [left, right], (m, n), np.float32))
    return builder.build(found)


def functions(text: str, stem: str) -> list[str]:
    return re.findall(rf"^define internal void @({stem}\w*)\(", text, re.MULTILINE)


@pytest.mark.usefixtures("own_products")
def test_products_share_the_functions_of_their_tiles():
    # Rows of A lie 64 apart in all of them; how wide B and C are does not matter.
    one = lower(products((96, 64, 96)), threads=1)
    four = lower(products((96, 64, 96), (96, 64, 192), (96, 64, 480), (96, 64, 960)), threads=1)
    assert functions(four.llvm, "tile_") == functions(one.llvm, "tile_") != []
    assert functions(four.llvm, "pack_") == functions(one.llvm, "pack_")


@pytest.mark.usefixtures("own_products")
def test_one_function_packs_columns_for_all_products():
    text = lower(products((96, 64, 96), (96, 128, 100), (96, 32, 17), transposed=True), threads=1).llvm
    assert len(functions(text, "pack_columns_")) == 1


def test_powers_of_scalars_are_written_once_for_all_parameters():
    weights = [gg.ones(size, requires_grad=True) for size in (3, 5, 40)]
    optimizer = gg.optim.Adam(weights)

    @gg.compile(backend="llvm", threads=1)
    def step():
        optimizer.zero_grad()
        sum((weight * weight).sum() for weight in weights).backward()
        optimizer.step()

    step()
    text = step.program.llvm
    powers = re.findall(r"^define internal double @(gg_power\w*)\(.*\) noinline", text, re.MULTILINE)
    assert len(powers) == 3  # of both means' rates, and a root
    assert [len(re.findall(rf"call double @{name}\(", text)) for name in powers] == [3, 3, 3]


# --- the trace ------------------------------------------------------------------------------------


def test_a_later_look_at_a_function_takes_one_walk():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    first = reach(net.forward, {})
    again = reach(net.forward, {}, first)
    assert first.rounds > 1
    assert again.rounds == 1
    assert [edge.path for edge in again.edges] == [edge.path for edge in first.edges]
    assert again.tensors.keys() == first.tensors.keys()


# --- the second process ---------------------------------------------------------------------------


def training():
    """A small network's compiled step, and what it gives in three calls: losses and parameters."""
    gg.manual_seed(0)
    hidden = nn.Linear(12, 7), nn.BatchNorm1d(7), nn.GELU()
    net = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), *hidden, nn.Linear(7, 9))
    optimizer = gg.optim.AdamW(net.parameters())
    scale = np.linspace(1, 2, 9, dtype=np.float32)

    @gg.compile(backend="llvm", threads=1)
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x) * gg.tensor(scale), y)
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, (6, 3)), rng.integers(0, 9, 6)
    losses = [step(gg.tensor(x), gg.tensor(y)).item() for _ in range(3)]
    return step, losses, [parameter.detach().numpy().copy() for parameter in net.parameters()]


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A cache of its own, and how often the passes and the planning ran."""
    monkeypatch.setenv("GLASSGRAD_CACHE_DIR", str(tmp_path))
    calls = {"passes": 0, "plans": 0}
    run, make = passes.run, stages.make_plan

    def counting_run(*args, **kwargs):
        calls["passes"] += 1
        return run(*args, **kwargs)

    def counting_make(*args, **kwargs):
        calls["plans"] += 1
        return make(*args, **kwargs)

    monkeypatch.setattr(passes, "run", counting_run)
    monkeypatch.setattr(stages, "make_plan", counting_make)
    return calls


def test_a_step_from_the_disk_needs_neither_passes_nor_a_plan(counted):
    cold, losses, parameters = training()
    assert counted == {"passes": 1, "plans": 1}
    warm, again, same = training()
    assert counted == {"passes": 1, "plans": 1}
    assert not cold.program.stats.cached
    assert warm.program.stats.cached
    assert again == losses
    for one, two in zip(parameters, same, strict=True):
        np.testing.assert_array_equal(one, two)


def test_what_the_passes_made_of_a_step_from_the_disk_can_be_looked_at(counted):
    cold, _, _ = training()
    warm, _, _ = training()
    assert warm.stats.instructions == cold.stats.instructions == len(cold.graph.instrs)
    assert counted == {"passes": 1, "plans": 1}, "totals are stored"
    assert str(warm.graph) == str(cold.graph)
    assert warm.llvm == cold.llvm
    assert counted == {"passes": 2, "plans": 2}, "once for all that somebody asks"


def test_a_wrong_index_is_told_by_a_step_from_the_disk(counted):
    messages = []
    for _ in range(2):
        step, _, _ = training()
        with pytest.raises(IndexError) as caught:
            step(gg.tensor(np.full((6, 3), 9)), gg.tensor(np.zeros(6, np.int64)))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "9" in messages[0]
    assert counted["plans"] == 1


def test_other_passes_or_none_are_another_entry(counted):
    graph = products((4, 5, 6))
    for planned in (2, 2):
        lower(graph, threads=1)
        stages.native(graph, 1)
        assert counted["plans"] == planned


def test_a_constant_that_the_passes_computed_comes_back_from_the_disk(counted):
    def shifted():
        table = gg.arange(12, dtype=gg.float32).reshape(3, 4)

        @gg.compile(backend="llvm")
        def step(x):
            return x + (table * 2).exp().sum(0)

        return step

    x = gg.ones(4)
    first, second = shifted(), shifted()
    np.testing.assert_array_equal(first(x).numpy(), second(x).numpy())
    assert second.program.stats.cached
    assert counted == {"passes": 1, "plans": 1}


_SECOND_PROCESS = """
import hashlib
from glassgrad.compile import stages
from glassgrad.compile.ir import passes
from tests.compile.native.test_compile_time import training

def refuse(*args, **kwargs):
    raise AssertionError("this was done before")

passes.run = stages.make_plan = refuse
_, losses, parameters = training()
print(repr(losses), hashlib.sha256(b"".join(one.tobytes() for one in parameters)).hexdigest())
"""


def test_a_second_process_finds_all_of_it(counted):
    _, losses, parameters = training()
    summary = hashlib.sha256(b"".join(one.tobytes() for one in parameters)).hexdigest()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", _SECOND_PROCESS], capture_output=True, text=True, env=environment, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == f"{losses!r} {summary}"


def test_planning_takes_the_same_for_each_layer():
    """By counting: what the search for groups between two others looks at, and what is made, for 3 and 9 layers."""
    counts = []
    for layers in (3, 9):
        gg.manual_seed(0)
        parts = [nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU()) for _ in range(layers)]
        model = nn.Sequential(*parts)
        optimizer = gg.optim.AdamW(model.parameters())

        @gg.compile(keep_grads=False, strict=True, threads=1)
        def step(x, model=model, optimizer=optimizer):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        step(gg.ones(4, 8))
        plan = stages.planned(step.traced, 1).plan
        counts.append((plan.fusion.links.steps, len(plan.kernels), step.stats.functions))
    (few, kernels, functions), (many, more, same) = counts
    assert many <= 3 * max(few, kernels)
    assert more <= 3 * kernels + 3
    assert same <= functions + 2
