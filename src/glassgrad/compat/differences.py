"""PyTorch's names that exist here and do something else, and packages made for PyTorch: what `--check` says of them.

Names that lack are in the tables that the errors read: `compat.INSTEAD`, `absent.INSTEAD`, those of the modules.
"""

from __future__ import annotations

from glassgrad.base.tables import words

_NO_GPU = "it raises an error, because there is no GPU: call it only if torch.cuda.is_available()."
_UNCHANGED = "it returns the function unchanged; use glassgrad.compile to compile it."
_MPI = "processes communicate over MPI: start them with `glassgrad launch -n 4 script.py`."
_BFLOAT16 = "float32 stays float32, unless the processor has AVX512-BF16 and the dtype is bfloat16."
_UNPOOL = "if an index occurs twice, only the stored value gets a gradient."
_WRITES = "a function that writes to its argument is differentiated and changes the caller's tensor."

# What differs, and the names.
_DIFFERENT: dict[str, str] = {
    _NO_GPU: """
        torch.cuda.current_device torch.cuda.set_device torch.cuda.get_device_name torch.cuda.get_device_properties
        torch.Tensor.cuda torch.nn.Module.cuda
    """,
    _UNCHANGED: "torch.jit.script torch.jit.trace torch.jit.freeze torch.jit.export torch.jit.ignore torch.jit.unused",
    _MPI: """
        torch.distributed.init_process_group torch.nn.parallel.DistributedDataParallel torch.nn.DataParallel
    """,
    _BFLOAT16: "torch.autocast torch.amp.autocast torch.cuda.amp.autocast",
    _UNPOOL: """
        torch.nn.functional.max_unpool1d torch.nn.functional.max_unpool2d torch.nn.functional.max_unpool3d
        torch.nn.MaxUnpool1d torch.nn.MaxUnpool2d torch.nn.MaxUnpool3d
    """,
    _WRITES: "torch.func.grad torch.func.vjp",
    "it writes safetensors: tensors, dictionaries, lists, numbers and text, but no objects. Save model.state_dict().": (
        "torch.save"
    ),
    "it reads safetensors; convert a file of PyTorch with safetensors.torch.save_file.": "torch.load",
    "the same seed gives other numbers, from the same distributions.": "torch.manual_seed",
}
DIFFERENT = {name: text for text, names in _DIFFERENT.items() for name in words(names)}

_OWN_MODELS = "write the model with torch.nn; weights load through safetensors."
# Packages that use internals of PyTorch.
PACKAGES = {
    "torchvision": "read MNIST with glassgrad.data.mnist; write transforms as functions of arrays.",
    "torchaudio": "read files with SciPy or soundfile; torch.stft computes spectra.",
    "torchtext": "convert characters to numbers with glassgrad.data.CharTokenizer; read texts with Python.",
    "torchmetrics": "compute metrics with NumPy or scikit-learn.",
    "torchdata": "use the data sets, samplers and loaders of torch.utils.data.",
    "torch_geometric": "express messages along edges with torch.sparse_coo_tensor and scatter_add.",
    "torch_scatter": "use torch.Tensor.scatter_add and scatter_reduce.",
    "pytorch_lightning": "write the loop, or use glassgrad.train.Trainer.",
    "lightning": "write the loop, or use glassgrad.train.Trainer.",
    "transformers": _OWN_MODELS,
    "timm": _OWN_MODELS,
}

__all__ = ["DIFFERENT", "PACKAGES"]
