"""Memory shared by processes: its content, its transfer, its release, and failing processes."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import time
from multiprocessing import reduction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.engine.memory import shared
from glassgrad.errors.kinds import AutogradError, ProcessExitedError, ProcessRaisedError
from tests.optim.optimizer_cases import OPTIMIZERS, OURS, Case
from tests.utils import children

FILES = Path("/proc/self/fd")
METHODS = ("fork", "spawn")
DTYPES = ("float32", "float64", "float16", "int64", "int8", "bool", "complex64")

pytestmark = pytest.mark.skipif(not shared.is_possible(), reason="processes cannot share memory on this system")


def mapped() -> int:
    """How many segments this process has open."""
    gc.collect()
    links = []
    for file in FILES.iterdir():
        with contextlib.suppress(OSError):  # of the listing itself
            links.append(str(file.readlink()))
    return sum("memfd:glassgrad" in link for link in links)


needs_proc = pytest.mark.skipif(not FILES.is_dir(), reason="open files are counted in /proc")

# --- what moves -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
def test_values_stay(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(dtype)
    x = gg.tensor(values)
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
    assert x.dtype == values.dtype
    assert x.shape == values.shape
    np.testing.assert_array_equal(x.numpy(), values)
    place = x.data_ptr()
    assert x.share_memory_().data_ptr() == place
    assert x.detach().is_shared()
    assert not x.clone().is_shared()


def test_bfloat16() -> None:
    pytest.importorskip("ml_dtypes", reason="it brings the dtype")
    x = gg.tensor([1.5, -2.0]).bfloat16().share_memory_()
    assert x.float().tolist() == [1.5, -2.0]


def test_layouts_stay() -> None:
    whole = gg.arange(24).reshape(4, 6)
    for view in (whole.T, whole[1:, ::2], whole[:, 2]):
        expected = view.tolist()
        assert view.share_memory_().tolist() == expected
        assert view.is_shared()
    turned = gg.zeros(3, 2).T.share_memory_()
    assert turned.stride() == (1, 2)


def test_a_model_moves_whole_and_tied_weights_stay_tied() -> None:
    model = gg.nn.Sequential(gg.nn.Linear(3, 3), gg.nn.BatchNorm1d(3), gg.nn.Linear(3, 3))
    model[2].weight = model[0].weight
    model[2].bias.data = model[0].bias.data  # the same memory in another parameter
    x = gg.randn(5, 3)
    expected = model(x)
    expected.sum().backward()
    before = mapped() if FILES.is_dir() else 0
    assert model.share_memory() is model
    if before:
        assert mapped() == before + 2  # the descriptor, and the one that Python's mmap keeps
    assert all(value.is_shared() for value in (*model.parameters(), *model.buffers()))
    assert model[0].weight.grad.is_shared()
    np.testing.assert_array_equal(model.eval()(x).shape, expected.shape)
    with gg.no_grad():
        model[0].bias.fill_(7.0)
    assert model[2].bias.tolist() == [7.0] * 3
    addresses = [value.data_ptr() % 64 for value in model.parameters()]
    assert addresses == [0] * len(addresses)


def test_a_gradient_is_right_for_shared_tensors() -> None:
    x = gg.randn(4, 3).share_memory_().requires_grad_()
    w = gg.randn(3, 2, requires_grad=True).share_memory_()
    (gg.tanh(x @ w) ** 2).sum().backward()
    y = np.tanh(x.detach().numpy().astype(float) @ w.detach().numpy().astype(float))
    inner = 2 * y * (1 - y**2)
    np.testing.assert_allclose(w.grad.numpy(), x.detach().numpy().T.astype(float) @ inner, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), inner @ w.detach().numpy().T.astype(float), rtol=1e-5, atol=1e-6)


def test_an_overwritten_value_is_still_noticed() -> None:
    model = gg.nn.Linear(2, 2).share_memory()
    y = (model.weight**2).sum()
    with gg.no_grad():
        model.bias.add_(1)  # its neighbour in the same segment does not matter
    y.backward()
    y = (model.weight**2).sum()
    with gg.no_grad():
        model.weight.add_(1)
    with pytest.raises(AutogradError, match="weight"):
        y.backward()


@pytest.mark.parametrize("case", [*OPTIMIZERS, *OURS], ids=lambda case: case.id)
def test_optimizers_write_where_the_weights_are(case: Case) -> None:
    model = gg.nn.Linear(4, 3)
    optimizer = getattr(gg.optim, case.name)(model.parameters(), **case.options)
    model.share_memory()
    places = [(p.data_ptr(), p.clone()) for p in model.parameters()]
    for _ in range(3):
        optimizer.zero_grad()
        (model(gg.ones(2, 4)) ** 2).sum().backward()
        optimizer.step()
    for p, (place, before) in zip(model.parameters(), places, strict=True):
        assert p.data_ptr() == place
        assert p.is_shared()
        assert not gg.equal(p, before)


def test_a_compiled_step_writes_where_the_weights_are() -> None:
    model = gg.nn.Sequential(gg.nn.Linear(4, 3), gg.nn.BatchNorm1d(3)).share_memory()
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    places = [value.data_ptr() for value in model.state_dict().values()]
    before = model[0].weight.clone()

    @gg.compile
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 3).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(gg.randn(8, 4))
    assert [value.data_ptr() for value in model.state_dict().values()] == places
    assert not gg.equal(model[0].weight, before)


# --- how it travels ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_what_is_sent_is_shared(method: str) -> None:
    context = multiprocessing.get_context(method)
    inbox, outbox, held = context.Queue(), context.Queue(), gg.zeros(2).share_memory_()
    process = context.Process(target=children.add_one, args=(inbox, outbox, held))
    process.start()
    sent = [gg.zeros(3), gg.nn.Parameter(gg.zeros(2, 2)), gg.zeros(4)[1:3]]
    for x in sent:
        inbox.put(x)
        shares, tracks, kind, pid = outbox.get(timeout=60)
        assert (shares, tracks, kind) == (True, x.requires_grad, type(x).__name__)
        assert pid != os.getpid()
        assert x.is_shared()
        assert (x == 1).all()
    assert held.tolist() == [10, 0]
    came = outbox.get(timeout=60)
    assert came.tolist() == [[0, 2], [1, 3]]
    assert came.is_shared()
    inbox.put(None)
    process.join(60)
    assert process.exitcode == 0
    assert came.tolist() == [[0, 2], [1, 3]]  # the sender is gone, the memory is not


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_returns_tensors(method: str) -> None:
    with gg.multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(children.returned, range(4))
    assert [x.tolist() for x in found] == [[n] * 3 for n in range(4)]


def test_memory_that_arrives_twice_is_mapped_once() -> None:
    x, queue = gg.arange(6.0).share_memory_(), multiprocessing.Queue()
    queue.put(x)
    queue.put(x[2:4])
    first, second = queue.get(timeout=60), queue.get(timeout=60)
    assert first.data_ptr() == x.data_ptr()
    assert second.data_ptr() == x.data_ptr() + 8
    assert first is not x


def test_results_of_recorded_ops_are_not_sent() -> None:
    x = gg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"send its \.detach\(\)"):
        reduction.ForkingPickler.dumps(x * 2)


@pytest.mark.parametrize("without", ["descriptors", "memfd"])
def test_other_systems(without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, queue = gg.ones(3), multiprocessing.Queue()
    if without == "memfd":
        monkeypatch.delattr(os, "memfd_create", raising=False)
        queue.put(x)
        queue.get(timeout=60).add_(1)
        assert x.tolist() == [2, 2, 2]
        return
    monkeypatch.setattr(shared, "is_possible", lambda: False)
    with pytest.raises(AutogradError, match="through a queue"):
        x.share_memory_()
    queue.put(x)
    queue.get(timeout=60).add_(1)
    assert x.tolist() == [1, 1, 1]
    assert list(gg.utils.data.DataLoader(gg.zeros(4, 30_000), 2, num_workers=1))[1].shape == (2, 30_000)


# --- who frees it -----------------------------------------------------------------------------------


@needs_proc
@pytest.mark.parametrize("method", METHODS)
def test_a_killed_process_leaves_nothing(method: str) -> None:
    before = mapped()
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=children.send_and_wait, args=(queue,), daemon=True)
    process.start()
    x = queue.get()
    assert mapped() == before + 2
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert x.sum() == 1000
    del x
    assert mapped() == before


@needs_proc
def test_memory_goes_with_its_last_tensor() -> None:
    before = mapped()
    x = gg.ones(100).share_memory_()
    part = x[3:]
    assert mapped() == before + 2
    del x
    assert part.sum() == 97
    assert mapped() == before + 2
    del part
    assert mapped() == before


# --- how processes fail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("raise", ProcessRaisedError, "-- Process 1 terminated with the following error:\n(.|\n)*no such luck"),
        ("exit", ProcessExitedError, "process 1 terminated with exit code 3"),
        ("signal", ProcessExitedError, "process 1 terminated with signal SIGUSR1"),
    ],
)
def test_the_first_failure_ends_all_and_is_raised(how: str, kind: Any, message: str) -> None:
    start = time.monotonic()
    seen = gg.zeros(3).share_memory_()
    with pytest.raises(kind, match=message) as caught:
        gg.multiprocessing.spawn(children.fail, (how, seen), nprocs=3, start_method="fork")
    error = caught.value
    assert time.monotonic() - start < 60
    assert (error.error_index, error.exit_code) == (1, {"raise": 1, "exit": 3, "signal": -signal.SIGUSR1}[how])
    assert error.error_pid > 0
    if kind is ProcessExitedError:
        assert error.signal_name == ("SIGUSR1" if how == "signal" else None)
    assert not multiprocessing.active_children()


def test_a_context_is_joined_step_by_step() -> None:
    context = gg.multiprocessing.start_processes(children.wait, (0.5,), nprocs=2, join=False, start_method="fork")
    assert len(set(context.pids())) == 2
    assert context.join(timeout=0.01) is False
    while not context.join(timeout=60):
        pass
    assert [process.exitcode for process in context.processes] == [0, 0]


def test_messages_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch's messages are compared")
    theirs = torch.multiprocessing.spawn
    seen = gg.zeros(3).share_memory_()
    names = {"SpawnContext", "ProcessContext", "ProcessRaisedException", "ProcessExitedException", "start_processes"}
    assert not [name for name in names if not hasattr(gg.multiprocessing, name)]
    for how in ("raise", "exit", "signal"):
        texts = []
        for module in (gg, torch):
            try:
                module.multiprocessing.start_processes(children.fail, (how, seen), nprocs=2, start_method="fork")
            except Exception as error:  # noqa: BLE001 - of two libraries
                texts.append(str(error).split("\nNext")[0].strip().splitlines())
        assert texts[0][0] == texts[1][0]
        assert texts[0][-1] == texts[1][-1]
    assert theirs.__name__ == gg.multiprocessing.spawn.__name__


def test_strategies() -> None:
    gg.multiprocessing.set_sharing_strategy("file_system")
    assert gg.multiprocessing.get_sharing_strategy() in gg.multiprocessing.get_all_sharing_strategies()
    with pytest.raises(ValueError, match="file_descriptor or file_system"):
        gg.multiprocessing.set_sharing_strategy("carrier pigeon")
