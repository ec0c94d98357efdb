"""Files written for PyTorch, run under both libraries from equal weights; and the ways to run them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import compat

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "torch_style"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def loaded(name: str, alias: str) -> Any:
    """The script as a module of its own."""
    spec = importlib.util.spec_from_file_location(alias, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_there_are_three() -> None:
    assert SCRIPTS == ["gpt", "resnet", "tagger"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_fifty_losses_agree(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    theirs = loaded(name, f"theirs_{name}")
    assert theirs.torch is torch
    model = theirs.build()
    weights = {key: value.numpy().copy() for key, value in model.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.train(model, 50)
    with compat.as_torch():
        ours = loaded(name, f"ours_{name}")
        assert ours.torch is gg
        twin = ours.build()
        assert list(twin.state_dict()) == list(weights)
        twin.load_state_dict({key: ours.torch.tensor(value) for key, value in weights.items()})
        found = ours.train(twin, 50)
    assert len(found) == 50
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    after = {key: value.numpy() for key, value in model.state_dict().items()}
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(value.numpy(), after[key], rtol=2e-2, atol=2e-3, err_msg=key)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_run_from_the_command_line_without_pytorch(name: str) -> None:
    blocked = (
        "import sys; from glassgrad import compat; compat.main([sys.argv[1]]);"
        "assert not any(m == 'torch' or m.startswith('torch.') for m in sys.modules)"
    )
    command = [sys.executable, "-c", blocked, str(EXAMPLES / f"{name}.py")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "loss" in process.stdout


def test_the_name_torch_comes_and_goes() -> None:
    before = sys.modules.get("torch")
    stand = compat.as_torch()
    import torch
    import torch.backends.cudnn as cudnn  # noqa: PLR0402 - the form that scripts have
    import torch.nn.functional as F
    from torch.cuda.amp import GradScaler
    from torch.nn.parameter import Parameter
    from torch.optim.lr_scheduler import StepLR
    from torch.utils.checkpoint import checkpoint
    from torch.utils.data import DataLoader

    assert torch is gg
    assert F is gg.nn.functional
    assert DataLoader is gg.utils.data.DataLoader
    assert StepLR is gg.optim.lr_scheduler.StepLR
    assert Parameter is gg.nn.Parameter
    assert checkpoint.__module__.startswith("glassgrad.")
    assert GradScaler is gg.amp.GradScaler
    cudnn.benchmark = True
    with pytest.raises(ImportError):
        import torch.nothing_of_the_sort
    stand.undo()
    stand.undo()
    assert sys.modules.get("torch") is before
    assert not [name for name in sys.modules if name.startswith("torch.") and before is None]
    assert gg.nn.__spec__.name == "glassgrad.nn"


def test_usage() -> None:
    with pytest.raises(SystemExit, match="usage"):
        compat.main([])


# --- names ------------------------------------------------------------------------------------------


def test_names_that_scripts_use_in_passing() -> None:
    torch = gg
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert device.type == "cpu"
    assert torch.cuda.device_count() == 0
    assert not torch.backends.mps.is_available()
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_float32_matmul_precision("high")
    torch.use_deterministic_algorithms(True)
    x = torch.FloatTensor([1, 2]).to(device)
    assert x.dtype == torch.float32
    assert torch.LongTensor([1]).dtype == torch.int64
    assert torch.FloatTensor(2, 3).shape == torch.Size([2, 3])
    assert torch.is_tensor(x)
    assert torch.numel(x) == 2
    assert torch.is_floating_point(x)
    assert torch.finfo(torch.float32).eps == np.finfo(np.float32).eps
    assert torch.get_default_dtype() == torch.float32
    with torch.inference_mode():
        assert not (torch.ones(1, requires_grad=True) * 2).requires_grad
    torch.manual_seed(3)
    assert torch.initial_seed() == 3
    state = torch.get_rng_state()
    first = torch.rand(2)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(2), first)
    assert torch.seed() == torch.initial_seed()
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16) if hasattr(torch, "autocast") else torch.no_grad():
        pass


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: gg.fx, "compiled.graph"),
        (lambda: gg.arrange, "arange"),
        (lambda: gg.nn.MultiHeadAttention, "MultiheadAttention"),
        (lambda: gg.nn.functional.crossentropy, "cross_entropy"),
        (lambda: gg.optim.SparseAdan, "SparseAdam"),
        (lambda: gg.set_default_dtype(gg.int64), "int64"),
        (lambda: gg.ones(2).to("cuda"), "cuda"),
        (gg.cuda.current_device, "cuda"),
    ],
)
def test_what_is_missing_says_so_and_what_to_use(use: Any, message: str) -> None:
    with pytest.raises((AttributeError, ValueError, TypeError), match=message):
        use()


def test_compile_takes_models_and_pytorchs_options() -> None:
    model = gg.nn.Sequential(gg.nn.Linear(3, 4), gg.nn.Tanh(), gg.nn.Linear(4, 1))
    compiled = gg.compile(model, mode="reduce-overhead", fullgraph=True, dynamic=False, backend="inductor")
    x = gg.randn(5, 3)
    (compiled(x) ** 2).sum().backward()
    found = [p.grad.numpy().copy() for p in compiled.parameters()]
    model.zero_grad()
    (model(x) ** 2).sum().backward()
    for a, p in zip(found, model.parameters(), strict=True):
        np.testing.assert_allclose(a, p.grad.numpy(), rtol=1e-5, atol=1e-6)
    assert list(compiled.state_dict()) == list(model.state_dict())
    assert gg.compile(model, disable=True) is model


# --- loss scaling -----------------------------------------------------------------------------------


def test_grad_scaler_leaves_out_bad_steps_and_grows() -> None:
    w = gg.tensor([1.0], requires_grad=True)
    optimizer = gg.optim.SGD([w], lr=0.5)
    scaler = gg.amp.GradScaler(init_scale=8.0, growth_interval=2)
    for factor, expected, scale in ((1.0, 0.5, 8.0), (np.inf, 0.5, 4.0), (1.0, 0.0, 4.0), (1.0, -0.5, 8.0)):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert w.item() == expected
        assert scaler.get_scale() == scale
    again = gg.amp.GradScaler()
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 8.0
    off = gg.amp.GradScaler(enabled=False)
    assert off.scale(w) is w
    assert off.state_dict() == {}
