"""`glassgrad.onnx.load`: an ONNX file as a module."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from glassgrad import errors
from glassgrad.onnx.calls import Call
from glassgrad.onnx.exporting import package
from glassgrad.onnx.files import TEXT, Tensors, read
from glassgrad.onnx.loaded import OPERATORS, OnnxModel

_DOMAINS = {"", "ai.onnx", "ai.onnx.ml"}


def load(path: str | Path) -> OnnxModel:
    """Read an ONNX file as a module that computes, trains and compiles like any other.

    Initializers that are the weights of some operator become parameters, under their names; running statistics of
    batch norm and other tables of floats become buffers; integers and masks are constants. In training mode, batch norm
    and dropout act like the layers of `glassgrad.nn`. Outputs that are text, such as the labels of a classifier from
    scikit-learn, are left out.

    Args:
        path: the file. Weights in separate files are read only from its folder.

    Returns:
        The module; `inputs` and `outputs` are the names of its arguments and results.

    Raises:
        PackageError: the package `onnx` is not installed.
        OnnxError: the file is damaged, uses unsupported operators (all are listed), or refers to files outside its
            folder.
        FileNotFoundError: there is no such file.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.onnx.load("model.onnx")  # doctest: +SKIP
        >>> optimizer = gg.optim.SGD(model.parameters(), lr=0.1)  # doctest: +SKIP
    """
    onnx = package("loading an ONNX model")
    path = Path(path)
    model = read(onnx, path)
    graph = model.graph
    if graph.sparse_initializer:
        raise errors.ONNX_DAMAGED(path=path, problem="its weights are sparse, which glassgrad does not read")
    versions = {one.domain: one.version for one in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 18))
    tensors = Tensors(onnx, path)
    kept = {one.name: tensors.array(one) for one in graph.initializer}
    calls = [
        Call(node.op_type, [*node.input], [*node.output], tensors.attributes(node), node.name, version, str(path))
        for node in graph.node
    ]
    _check_operators(path, graph)
    inputs = [one.name for one in graph.input if one.name not in kept]
    calls, outputs = _computable(calls, [one.name for one in graph.output], {*inputs, *kept}, kept, path)
    return OnnxModel(inputs, outputs, calls, {name: kept[name] for name in _read(calls, outputs, kept)})


def _check_operators(path: Path, graph: Any) -> None:
    """Raise with the list of all unsupported operators."""
    unknown = {
        f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for node in graph.node
        if node.op_type not in OPERATORS or node.domain not in _DOMAINS
    }
    if unknown:
        raise errors.ONNX_OPERATORS(path=path, names=", ".join(sorted(unknown)))


def _computable(
    calls: list[Call], outputs: list[str], given: set[str], kept: dict[str, Any], path: Path
) -> tuple[list[Call], list[str]]:
    """Return the nodes and outputs that do not work on text; raise if nothing computes a value that is read."""
    text = {name for name, array in kept.items() if array.dtype == object}
    known = set(given)
    left: list[Call] = []
    for call in calls:
        missing = [name for name in call.inputs if name and name not in known]
        if missing:
            raise errors.ONNX_DAMAGED(
                path=path, problem=f"{call.name or call.op} reads {missing[0]!r} before it is computed"
            )
        known.update(call.outputs)
        if text & set(call.inputs) or (call.op == "Cast" and call.get("to") == TEXT):
            text.update(call.outputs)
        else:
            left.append(call)
    unmade = [name for name in outputs if name not in known]
    if unmade:
        raise errors.ONNX_DAMAGED(path=path, problem=f"nothing computes its output {unmade[0]!r}")
    numbers = [name for name in outputs if name not in text]
    if len(numbers) < len(outputs):
        left_out = ", ".join(sorted(set(outputs) - set(numbers)))
        warnings.warn(errors.ONNX_TEXT.text(path=path, names=left_out), errors.OnnxWarning, stacklevel=3)
    return _needed(left, numbers), numbers


def _needed(calls: list[Call], outputs: list[str]) -> list[Call]:
    """Return the nodes that the outputs depend on."""
    wanted = set(outputs)
    found = []
    for call in reversed(calls):
        if wanted & set(call.outputs):
            wanted.update(call.inputs)
            found.append(call)
    return found[::-1]


def _read(calls: list[Call], outputs: list[str], kept: dict[str, Any]) -> list[str]:
    used = {name for call in calls for name in call.inputs} | set(outputs)
    return [name for name in kept if name in used]


__all__ = ["load"]
