"""Names that PyTorch programs import but may never use: a call raises and explains why."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from glassgrad.compat.namespaces import Namespace, no, nothing, same
from glassgrad.errors.missing import missing

FILES = "download the file yourself; weights load through safetensors."
_ONNX = "torch.onnx.export writes the same file."
_GRAPH = "compiled.stats has the operations and bytes of a compiled function."


def refused(module: str, name: str, why: str) -> Any:
    """Return a class of this name that raises when it is called; as a class it works in `isinstance`."""

    def stop(_cls: Any, *_args: object, **_kwargs: object) -> Any:
        raise missing(f"glassgrad.{module}", name, (), {name: why})

    return type(name, (), {"__new__": stop, "__doc__": f"Not here: {why}", "__module__": f"glassgrad.{module}"})


def _refused(module: str, names: str, why: str) -> dict[str, Any]:
    return {name: refused(module, name, why) for name in names.split()}


# --- torch.distributed ----------------------------------------------------------------------------


_COLLECTIVE = "all_reduce all_gather all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter"
_IN_PLACE = "glassgrad.distributed has the collectives that write tensors in place."
distributed_nn = Namespace("distributed.nn", _refused("distributed.nn", _COLLECTIVE, _IN_PLACE))

# --- files, other runtimes, measuring --------------------------------------------------------------


@contextmanager
def record_function(name: str, args: str | None = None) -> Iterator[None]:
    """Do nothing; no profiler here reads the name."""
    yield


hub = Namespace("hub", _refused("hub", "load load_state_dict_from_url download_url_to_file list help get_dir", FILES))
model_zoo = Namespace("utils.model_zoo", _refused("utils.model_zoo", "load_url", FILES))


def _export(
    model: Any,
    args: Any,
    f: Any = None,
    *,
    input_names: Any = None,
    output_names: Any = None,
    opset_version: int | None = None,
    dynamic_axes: Any = None,
    **_options: object,
) -> Any:
    """`torch.onnx.export`: sizes are fixed unless `dynamic_axes` lists them."""
    export = importlib.import_module("glassgrad.onnx.exporting")
    return export.export(
        model,
        args,
        f,
        input_names=input_names,
        output_names=output_names,
        dynamic_axes=dynamic_axes or {},
        opset=export.DEFAULT if opset_version is None else opset_version,
    )


onnx = Namespace("onnx", {"is_in_onnx_export": no, "export": _export, **_refused("onnx", "dynamo_export", _ONNX)})
profiler = Namespace(
    "profiler",
    {
        "record_function": record_function,
        **_refused("profiler", "profile schedule tensorboard_trace_handler ProfilerActivity", _GRAPH),
    },
)
dynamo = Namespace(
    "_dynamo",
    {
        "is_compiling": no,
        "disable": same,
        "allow_in_graph": same,
        "reset": nothing,
        "config": SimpleNamespace(),
    },
)
__all__ = ["distributed_nn", "dynamo", "hub", "model_zoo", "onnx", "profiler", "record_function", "refused"]
