"""Module paths, switches and small habits of PyTorch programs: their names exist and mean the same."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import compat
from glassgrad.compat import torch_names
from glassgrad.errors.kinds import MissingError

# What public models and scripts import, module by module.
IMPORTS = {
    "torch.nn.modules": "Linear Module", "torch.nn.modules.module": "Module", "torch.nn.modules.linear": "Linear",
    "torch.nn.modules.conv": "Conv2d _ConvNd", "torch.nn.modules.batchnorm": "_BatchNorm BatchNorm2d",
    "torch.nn.modules.loss": "_Loss MSELoss", "torch.nn.modules.utils": "_pair _single _triple _ntuple",
    "torch.nn.modules.container": "ModuleList Sequential", "torch.nn.modules.activation": "MultiheadAttention ReLU",
    "torch.nn.modules.rnn": "LSTM RNNBase", "torch.nn.parameter": "Parameter", "torch.nn.parallel": "DataParallel",
    "torch.nn.attention": "SDPBackend sdpa_kernel", "torch.nn.utils.rnn": "pack_padded_sequence",
    "torch.nn.utils.weight_norm": "weight_norm", "torch.nn.utils.parametrize": "register_parametrization",
    "torch.nn.utils.clip_grad": "clip_grad_norm_", "torch.utils.data.dataloader": "DataLoader default_collate",
    "torch.utils.data.dataset": "Dataset TensorDataset random_split", "torch.utils.data.sampler": "Sampler",
    "torch.utils.data._utils.collate": "default_collate", "torch.utils._pytree": "tree_map tree_flatten tree_unflatten",
    "torch.utils.checkpoint": "checkpoint", "torch.autograd.function": "Function FunctionCtx",
    "torch.autograd.variable": "Variable", "torch.autograd.functional": "jacobian hessian vjp jvp hvp vhp",
    "torch.optim.optimizer": "Optimizer", "torch.optim.adam": "Adam", "torch.optim.lr_scheduler": "_LRScheduler",
    "torch.distributions.normal": "Normal", "torch.distributions.kl": "kl_divergence",
    "torch.distributions.transforms": "TanhTransform", "torch.distributions.utils": "broadcast_all Distribution",
    "torch.cuda.amp": "autocast GradScaler", "torch.cuda.amp.grad_scaler": "GradScaler",
    "torch.multiprocessing": "Process Queue set_start_method spawn", "torch.jit": "script trace Final",
    "torch.compiler": "is_compiling disable", "torch.random": "fork_rng", "torch.testing": "assert_close",
    "torch.distributed": "is_initialized get_rank ReduceOp", "torch.distributed.nn": "all_reduce",
    "torch.utils.data.distributed": "DistributedSampler DataLoader", "torch.hub": "load_state_dict_from_url",
    "torch.utils.model_zoo": "load_url", "torch.onnx": "export", "torch.profiler": "record_function profile",
    "torch.nn.utils.convert_parameters": "parameters_to_vector", "torch.nn._reduction": "get_enum legacy_get_string",
    "torch.nn.common_types": "_size_2_t _size_any_t", "torch.utils.hooks": "RemovableHandle",
    "torch.utils.dlpack": "to_dlpack from_dlpack", "torch.autograd.anomaly_mode": "detect_anomaly",
    "torch.distributions.multivariate_normal": "MultivariateNormal", "torch.distributions.studentT": "StudentT",
    "torch.optim.sgd": "SGD", "torch.optim.lbfgs": "LBFGS", "torch.overrides": "has_torch_function",
    "torch._C": "Value Generator", "torch.functional": "einsum split",
    "torch.nn.parallel.distributed": "DistributedDataParallel",
    "torch.version": "cuda __version__", "torch.backends.cudnn": "benchmark", "torch.mps": "synchronize is_available",
}  # fmt: skip  # a table


@pytest.mark.parametrize("module", IMPORTS)
def test_imports(module: str) -> None:
    with compat.as_torch():
        found = importlib.import_module(module)
        assert [name for name in IMPORTS[module].split() if not hasattr(found, name)] == []
    real = pytest.importorskip("torch", reason="PyTorch has these modules")
    assert importlib.import_module(module) is not found
    assert real.__name__ == "torch"


def test_every_home_is_found_and_leaves_nothing_behind() -> None:
    before = {name: sorted(vars(importlib.import_module(f"glassgrad{name}"))) for name in ("", ".nn", ".autograd")}
    with compat.as_torch():
        for path in torch_names.HOMES:
            importlib.import_module(f"torch.{path.rstrip('.')}")
        assert sys.modules["torch"].nn.modules.conv.Conv2d is gg.nn.Conv2d
        assert isinstance(gg.nn.BatchNorm1d(2), sys.modules["torch"].nn.modules.batchnorm._BatchNorm)
        assert gg.__version__ >= "2"
        assert gg.nn.Linear(1, 1).__getattr__("weight").shape == (1, 1)
        with pytest.raises(AttributeError, match="no attribute 'wight'"):
            gg.nn.Linear(1, 1).wight  # noqa: B018 - the access is what is tested
    assert gg.__version__ < "2"
    assert gg.nn.init.__name__ == "glassgrad.nn.init"
    after = {name: sorted(vars(importlib.import_module(f"glassgrad{name}"))) for name in before}
    added = {name: set(after[name]) - set(before[name]) - {"__path__"} for name in before}
    assert not {"modules", "attention", "function", "variable"} & set().union(*added.values())


@pytest.mark.parametrize("path", sorted(path for path in torch_names.HOMES if not path.endswith(".")))
def test_a_module_hides_no_function_of_its_name(path: str) -> None:
    """`torch.autograd.gradcheck` is a function, although a module is called so as well."""
    above, _, name = path.rpartition(".")
    try:
        owner = importlib.import_module(f"glassgrad.{above}".rstrip("."))
    except ModuleNotFoundError:
        return  # what is above is a table too, which holds no functions
    own = getattr(owner, name, None)
    before = dict(vars(owner))
    with compat.as_torch() as torch:
        holder = importlib.import_module(f"torch.{above}") if above else torch
        assert callable(getattr(holder, name, None)) or not callable(own)
        importlib.import_module(f"torch.{path}")
        assert callable(getattr(holder, name)) or not callable(own)
    assert getattr(owner, name, None) is own
    assert {key: value for key, value in vars(owner).items() if before.get(key, value) is not value} == {}


def test_functions_are_called_after_modules_of_their_names_are_imported() -> None:
    with compat.as_torch() as torch:
        import torch.autograd.gradcheck
        import torch.nn.utils.weight_norm
        import torch.tensor  # of old programs

        assert torch.tensor([1.0, 2.0]).tolist() == [1.0, 2.0]
        assert torch.autograd.gradcheck(lambda x: x * x, torch.tensor([1.0], dtype=torch.float64, requires_grad=True))
        assert torch.nn.utils.weight_norm(torch.nn.Linear(2, 2)).weight_g.shape == (2, 1)
    assert type(gg.tensor).__name__ == "function"


REFUSED = {
    "distributed.nn": "all_reduce", "hub": "load_state_dict_from_url", "onnx": "dynamo_export",
    "utils.model_zoo": "load_url", "profiler": "profile",
}  # fmt: skip  # a table


@pytest.mark.parametrize("module", REFUSED)
def test_what_is_not_here_can_be_named_and_says_so_when_it_is_called(module: str) -> None:
    with compat.as_torch():
        found = importlib.import_module(f"torch.{module}")
        for name in REFUSED[module].split():
            assert not isinstance(gg.nn.Linear(1, 1), getattr(found, name))
            with pytest.raises(MissingError, match=f"has no '{name}'"):
                getattr(found, name)("argument")


def test_the_one_process_says_that_it_is_alone() -> None:
    with compat.as_torch():
        import torch.distributed as dist
        from torch.nn.parallel import data_parallel

        assert dist.is_available()
        assert not dist.is_initialized()
        assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
        assert data_parallel(gg.nn.ReLU(), gg.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]


def test_switches_of_attention_and_of_other_devices_change_nothing() -> None:
    with gg.backends.cuda.sdp_kernel(enable_flash=True, enable_math=False), compat.as_torch():
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.profiler import record_function
        from torch.utils.checkpoint import get_device_states, set_device_states

        with sdpa_kernel(backends=[SDPBackend.MATH]), record_function("step"):
            assert get_device_states(gg.ones(1)) == ([], [])
            set_device_states([], [])
    assert gg.cpu.is_available()
    assert not gg.is_autocast_enabled()


def test_small_functions_agree_with_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the other library")
    places = torch.unravel_index(torch.tensor([7, 22]), (3, 4, 2))
    assert [p.tolist() for p in gg.unravel_index(gg.tensor([7, 22]), (3, 4, 2))] == [p.tolist() for p in places]
    A = np.array([[2.0, 1.0], [5.0, 3.0]])
    b = np.array([[4.0], [6.0]])
    for read, options in ((np.triu(A), {}), (np.tril(A), {"upper": False}), (np.triu(A).T, {"transpose": True})):
        found = gg.triangular_solve(gg.tensor(b), gg.tensor(A), **options)
        np.testing.assert_allclose(read @ found.solution.numpy(), b)
        assert found.cloned_coefficient.tolist() == A.tolist()
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    assert not gg.detach(x * 2).requires_grad
    assert gg.fill(x, 7).tolist() == [7.0, 7.0]
    held = np.ones(2)
    assert np.shares_memory(gg.asarray(held).numpy(), held)
    assert not np.shares_memory(gg.asarray(held, copy=True).numpy(), held)
    with pytest.raises(ValueError, match="asarray"):
        gg.asarray([1.0], copy=False)
    assert gg.binomial(gg.full((50,), 9.0), gg.full((50,), 1.0)).tolist() == [9.0] * 50


def test_arrays_given_to_tensor_become_the_default_dtype_as_in_pytorch() -> None:
    values = np.array([1.0, 2.0])
    with compat.as_torch() as torch:
        assert torch.Tensor(values).dtype == torch.float32
        assert torch.Tensor(np.array([True, False])).tolist() == [1.0, 0.0]
        single = values.astype(np.float32)
        assert not np.shares_memory(torch.Tensor(single).numpy(), single)
        assert torch.poisson(torch.tensor([3.0], dtype=torch.float64)).dtype == torch.float64
    assert gg.Tensor(values).dtype == np.float64


def test_old_names_warn_and_work() -> None:
    w = gg.tensor([3.0, 4.0], requires_grad=True)
    (w * w / 2).sum().backward()
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        assert gg.nn.utils.clip_grad_norm([w], 1.0).item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.8], rtol=1e-5)


def test_data_sets_that_are_read_one_after_the_other() -> None:
    class Count(gg.utils.data.IterableDataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

        def __len__(self) -> int:
            return self.n

    both = Count(2) + Count(3)
    assert type(both) is gg.utils.data.ChainDataset
    assert len(both) == 5
    assert [batch.tolist() for batch in gg.utils.data.DataLoader(both, batch_size=3)] == [[0, 1, 0], [1, 2]]


SPAWNING = """
import sys
import glassgrad as gg

def write(rank, folder):
    with open(f"{folder}/{rank}", "w") as file:
        file.write(str(gg.ones(3).sum().item() * rank))

def fail_at_one(rank):
    raise SystemExit(rank)

if __name__ == "__main__":
    gg.multiprocessing.spawn(write, args=(sys.argv[1],), nprocs=2)
    try:
        gg.multiprocessing.spawn(fail_at_one, nprocs=2)
    except gg.errors.GlassgradError as error:
        print(error)
"""


def test_spawn_calls_a_function_in_processes_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "spawning.py"
    script.write_text(SPAWNING, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert [(tmp_path / str(rank)).read_text(encoding="utf-8") for rank in range(2)] == ["0.0", "3.0"]
    assert "process 1 terminated with exit code 1" in done.stdout


def test_tensorboard_says_what_it_needs() -> None:
    if importlib.util.find_spec("tensorboardX") is not None:
        pytest.skip("tensorboardX is installed")
    with compat.as_torch(), pytest.raises(ImportError, match=r"pip install 'glassgrad\[tensorboard\]'"):
        exec("from torch.utils.tensorboard import SummaryWriter")  # noqa: S102 - the statement is the subject


def test_a_writer_of_tensorboard_takes_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Writer:
        def add_scalars(self, tag: str, numbers: Any, step: int) -> None:
            seen.append((tag, numbers, step))

        def add_histogram(self, tag: str, values: Any, step: int = 0) -> None:
            seen.append((tag, values, step))

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))
    from glassgrad.utils import tensorboard

    tensorboard._writer.cache_clear()
    with compat.as_torch():
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter()
        writer.add_scalars("loss", {"a": gg.tensor(1.5), "b": 2.0}, 3)
        writer.add_histogram("weight", values=gg.nn.Linear(2, 2).weight)
    tensorboard._writer.cache_clear()
    assert [type(seen[0][1]["a"]), seen[0][1]["b"], seen[0][2]] == [np.ndarray, 2.0, 3]
    assert (type(seen[1][1]), seen[1][1].shape) == (np.ndarray, (2, 2))
    assert issubclass(SummaryWriter, Writer)


def test_devices_are_named_and_compared() -> None:
    x = gg.ones(2)
    cuda = gg.device("cuda")
    assert (cuda.type, cuda.index, str(gg.device("cuda:1")), gg.device("cuda", 1)) == ("cuda", None, "cuda:1", "cuda:1")
    assert x.device != cuda
    assert x.device != cuda.type
    assert x.device == gg.device("cpu") == gg.device("cpu:0") == "cpu"
    assert len({gg.device("cpu"), gg.device("cpu"), cuda}) == 2
    with gg.device("cpu"):
        assert gg.zeros(1).device.type == "cpu"
    layer = gg.nn.Linear(1, 1)
    for use in (lambda: x.to(cuda), lambda: gg.zeros(2, device=cuda), lambda: layer.to(cuda), cuda.__enter__):
        with pytest.raises(ValueError, match="cuda"):
            use()
    with pytest.raises(ValueError, match="no kind of device"):
        gg.device("gpu")
    gg.cuda.synchronize()
    assert not gg.mps.is_available()
    assert not gg.accelerator.is_available()
    assert gg.accelerator.current_accelerator() is None


@pytest.mark.parametrize("name", ["cuda", "backends"])
def test_modules_that_are_tables_are_imported_like_files(name: str) -> None:
    lines = f"import glassgrad.{name} as one", f"from glassgrad import {name} as two", f"import glassgrad.{name}"
    found: dict[str, Any] = {}
    for line in lines:
        exec(line, found)  # noqa: S102 - the statement is the subject
    assert found["one"] is found["two"] is getattr(gg, name) is importlib.import_module(f"glassgrad.{name}")
    assert name in dir(gg)
    assert not found["one"].cuda.is_built() if name == "backends" else not found["one"].is_available()


def test_a_sampler_of_ten_billion_takes_no_memory() -> None:
    data = gg.utils.data.TensorDataset(gg.arange(5))
    sampler = gg.utils.data.RandomSampler(data, replacement=True, num_samples=int(1e10))
    loader = gg.utils.data.DataLoader(data, batch_size=4, sampler=sampler)
    assert len(sampler) == 10**10
    batch, *_ = next(iter(loader))
    assert batch.shape == (4,)
    for replacement in (True, False):
        short = gg.utils.data.RandomSampler(range(7), replacement=replacement, num_samples=17)
        assert list(short.stream(3)) == short.indices(3).tolist()


def test_sizes() -> None:
    x = gg.zeros(2, 3, 4)
    assert (x.shape.numel(), x.shape[1:].numel(), x.size().numel(), x.shape[-1]) == (24, 12, 24, 4)
    assert type(x.shape[:2]) is type(x.shape + (1,)) is type((1,) + x.shape) is gg.Size  # noqa: RUF005 - sums are the subject
    assert x.shape == (2, 3, 4)
    assert hash(x.shape) == hash((2, 3, 4))
    assert gg.Size([2, 3]) == (2, 3)
    a, b, c = x.shape
    assert gg.zeros(x.shape).shape == gg.zeros(a, b, c).shape == gg.zeros(*x.shape).shape


def test_masks_of_bytes() -> None:
    x, mask = gg.arange(4.0), gg.tensor([1, 0, 2, 0], dtype=gg.uint8)
    assert x[mask].tolist() == [0, 2]
    x[mask] = 9
    assert x.tolist() == [9, 1, 9, 3]
    assert x[np.array([1, 0], np.uint8)].tolist() == [1, 9]  # NumPy's stay positions
    assert gg.ones(2, 4)[:, mask].shape == (2, 2)


def test_older_kinds_of_tensors() -> None:
    x = gg.tensor([1.5, 2.5])
    assert isinstance(x, gg.FloatTensor)
    assert not isinstance(x, gg.LongTensor)
    assert x.type(gg.ByteTensor).dtype == gg.uint8
    assert x.type("torch.LongTensor").tolist() == [1, 2]
    assert x.type() == "torch.FloatTensor"
    assert x.type(gg.float64).type() == "torch.DoubleTensor"
    assert gg.LongTensor([[1, 2]]).shape == (1, 2)


def test_the_default_dtype_can_be_set() -> None:
    gg.set_default_dtype(gg.float64)
    try:
        assert {t.dtype for t in (gg.zeros(2), gg.rand(2), gg.tensor(1.0), gg.linspace(0, 1, 3))} == {gg.float64}
        assert gg.nn.Linear(1, 1).weight.dtype == gg.float64
        assert gg.get_default_dtype() == gg.float64
        assert gg.tensor(1).dtype == gg.int64
    finally:
        gg.set_default_dtype(gg.float32)
    assert gg.zeros(2).dtype == gg.float32


def test_habits() -> None:
    model = gg.nn.ModuleList([gg.nn.ModuleList([gg.nn.Linear(2, 2), gg.nn.ReLU()]) for _ in range(2)])
    x = gg.ones(1, 2)
    for first, second in model:
        x = second(first(x))
    pair = (*model,)
    assert len(pair) == 2
    weights = gg.nn.ParameterList([gg.ones(2), gg.ones(2)])
    assert [g.tolist() for g in gg.autograd.grad((weights[0] * weights[1] * 3).sum(), weights)] == [[3, 3], [3, 3]]
    layer = gg.nn.Linear(2, 1)
    assert len(gg.autograd.grad(layer(gg.ones(1, 2)).sum(), layer.parameters())) == 2
    lstm = gg.nn.LSTM(2, 3, bidirectional=True)
    theirs = pytest.importorskip("torch", reason="PyTorch is the oracle").nn.LSTM(2, 3, bidirectional=True)
    assert lstm._flat_weights_names == theirs._flat_weights_names
    assert [w.shape for w in lstm._flat_weights] == [tuple(w.shape) for w in theirs._flat_weights]
    wrapped = gg.nn.DataParallel(layer)
    assert wrapped.module is layer
    assert wrapped(gg.ones(1, 2)).shape == (1, 1)
    assert gg.jit.script(layer) is layer
    assert gg.compiler.disable()(layer) is layer
    gg._assert(True, "")
    with pytest.raises(AssertionError, match="shape"):
        gg._assert(False, "shape")
    with compat.as_torch() as torch, torch.nn.attention.sdpa_kernel([]):
        pass


SMALL = {
    "tril": lambda t: t.tril_indices(3, 4, -1),
    "triu": lambda t: t.triu_indices(3, 2),
    "nothing": lambda t: t.tril_indices(0, 2),
    "prod": lambda t: t.cartesian_prod(t.tensor([1, 2]), t.tensor([3, 4, 5])),
    "prod of one": lambda t: t.cartesian_prod(t.tensor([1, 2])),
    "pairs": lambda t: t.combinations(t.tensor([4.0, 5.0, 6.0])),
    "triples": lambda t: t.combinations(t.tensor([4, 5, 6]), 3, True),
    "none": lambda t: t.combinations(t.tensor([4]), 2),
    "shapes": lambda t: t.zeros(t.broadcast_shapes((2, 1), (3,), 1)),
    "poisson": lambda t: t.poisson(t.zeros(2, 3)),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_functions(name: str) -> None:
    expected = SMALL[name](pytest.importorskip("torch", reason="PyTorch is the oracle"))
    found = SMALL[name](gg)
    assert found.shape == tuple(expected.shape)
    assert found.tolist() == expected.tolist()
    assert str(found.dtype) == str(expected.dtype).removeprefix("torch.")


# --- torch.autograd.functional ----------------------------------------------------------------------


def _vector(x: Any) -> Any:
    return (x.exp() * x.sum()).flatten()


def _number(x: Any) -> Any:
    return (x.sin() * x**2).sum()


def _two(x: Any, y: Any) -> Any:
    return (x * y.sum()).sum() + (y**3).sum()


def _pair(x: Any) -> Any:
    return x**2, x.sum()


CALLS = {
    "jacobian": lambda f, x, y, v: f.jacobian(_vector, x),
    "jacobian of two": lambda f, x, y, v: f.jacobian(_two, (x, y)),
    "jacobian forward": lambda f, x, y, v: f.jacobian(_vector, x, vectorize=True, strategy="forward-mode"),
    "jacobian of a pair": lambda f, x, y, v: f.jacobian(_pair, x),
    "hessian": lambda f, x, y, v: f.hessian(_number, x), "hessian of two": lambda f, x, y, v: f.hessian(_two, (x, y)),
    "vjp": lambda f, x, y, v: f.vjp(_vector, x, v), "vjp of a number": lambda f, x, y, v: f.vjp(_two, (x, y)),
    "vjp of a pair": lambda f, x, y, v: f.vjp(_pair, x, (v, v.sum())),
    "jvp": lambda f, x, y, v: f.jvp(_vector, x, v), "hvp": lambda f, x, y, v: f.hvp(_number, x, v),
    "hvp of two": lambda f, x, y, v: f.hvp(_two, (x, y), (v, y)), "vhp": lambda f, x, y, v: f.vhp(_number, x, v),
}  # fmt: skip  # a table


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, tuple) else [value]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_inputs(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    data = [np.array([0.3, -0.5, 1.1]), np.array([0.2, 0.7]), np.array([1.0, -2.0, 0.5])]
    expected = CALLS[name](torch.autograd.functional, *map(torch.tensor, data))
    found = CALLS[name](gg.autograd.functional, *map(gg.tensor, data))
    assert len(_flat(found)) == len(_flat(expected))
    for ours, theirs in zip(_flat(found), _flat(expected), strict=True):
        assert ours.shape == tuple(theirs.shape)
        assert not ours.requires_grad
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-9)


def test_derivatives_keep_their_history_if_asked() -> None:
    x = gg.tensor([1.0, 2.0], requires_grad=True)
    gg.autograd.functional.jacobian(lambda z: z**3, x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [6, 12]
    with pytest.raises(ValueError, match="only a single number"):
        gg.autograd.functional.vjp(lambda z: z**3, x)
    with pytest.raises(ValueError, match=r"shapes \[\(2,\)\]"):
        gg.autograd.functional.jvp(lambda z: z**3, x, gg.ones(3))


def test_fork_rng() -> None:
    gg.manual_seed(1)
    with gg.random.fork_rng():
        first = gg.rand(3)
    assert gg.equal(gg.rand(3), first)


def test_dtypes_answer_under_the_name_torch_only() -> None:
    assert not hasattr(np.dtype, "is_floating_point")
    with compat.as_torch():
        assert np.dtype("f8").is_floating_point
        assert np.zeros(1, "c8").dtype.is_complex
    assert not hasattr(np.dtype, "is_floating_point")
