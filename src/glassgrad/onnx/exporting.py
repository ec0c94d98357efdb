"""`glassgrad.onnx.export`: a module as an ONNX model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad._version import __version__
from glassgrad.compile.api import Compiled
from glassgrad.compile.front.calls.parameters import parameter_names
from glassgrad.data.atomic import write_atomically
from glassgrad.engine import tree
from glassgrad.engine.tensor import Tensor
from glassgrad.errors.packages import needed
from glassgrad.nn.module import Module
from glassgrad.onnx.extents import Dim, Extent, Samples
from glassgrad.onnx.table import written
from glassgrad.onnx.traced import Program, Slot, sized, trace
from glassgrad.onnx.writer import Value, Writer

LOWEST, DEFAULT, HIGHEST = 18, 18, 23
# The size limit of a protocol buffer; larger models store their weights in a file beside them.
LARGEST = 2**31 - 2**20

Axes = Mapping[str, Mapping[int, str] | Sequence[int]]


def export(
    model: Callable[..., Any],
    args: Any,
    path: str | Path | None = None,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Axes | None = None,
    opset: int = DEFAULT,
) -> Any:
    """Write a model as ONNX, for onnxruntime and other readers of the format.

    The model is traced in evaluation mode, at several sizes of the axes that may vary. Its parameters and buffers
    become initializers under their names in the `state_dict`, and the nodes are named after the modules that they come
    from. Recurrent layers become the operators LSTM, GRU and RNN, so the length of sequences may vary too.

    Args:
        model: a module, or a function of tensors.
        args: a tensor or array, or a tuple of arguments, as the model would be called.
        path: where to write the file; None writes none.
        input_names, output_names: by default the parameters of `forward`, and `output`.
        dynamic_axes: the axes that may have other sizes, ``{"x": {0: "batch"}}``; axes of one name have one size. A
            list of axes, as in PyTorch, gives each its own name. By default the first axis of every input is `batch`;
            `{}` fixes all sizes.
        opset: version of the operators, 18 to 23; older runtimes read lower ones.

    Returns:
        The `onnx.ModelProto`.

    Raises:
        PackageError: the package `onnx` is not installed (``pip install 'glassgrad[onnx]'``).
        OnnxError: an op has no ONNX form (the message names its place); the model draws random numbers or writes to its
            state; or its program differs between sizes.
        ArgumentError: axes, names or the opset do not fit.

    Example:
        >>> import glassgrad as gg
        >>> model = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.ReLU(), gg.nn.Linear(8, 2))
        >>> exported = gg.onnx.export(model, gg.zeros(3, 4))  # doctest: +SKIP
        >>> [node.op_type for node in exported.graph.node]  # doctest: +SKIP
        ['Gemm', 'Relu', 'Gemm']
    """
    if isinstance(args, str | Path):
        raise errors.ONNX_PATH_FIRST(given=str(args))
    onnx = package("exporting a model")
    if opset not in range(LOWEST, HIGHEST + 1):
        raise errors.ONNX_OPSET(given=opset, low=LOWEST, high=HIGHEST)
    args = args if isinstance(args, tuple) else (args,)
    if isinstance(model, Compiled):
        model = model.function
    names = _input_names(model, args, input_names)
    arrays = [leaf for leaf in tree.every_leaf(args) if isinstance(leaf, Tensor | np.ndarray)]
    axes = _axes(names, arrays, dynamic_axes)
    samples = _samples(names, arrays, axes)
    with _evaluated(model):
        program = trace(model, args, samples, lambda given, sizes: sized(given, axes, sizes))
    exported = _Export(onnx, model, program, names, axes, opset).model(output_names)
    if path is not None:
        write(onnx, exported, Path(path))
    return exported


def package(feature: str) -> Any:
    """Import the package `onnx`, which only this subpackage needs."""
    with needed("onnx", feature, extra="onnx"):
        onnx = importlib.import_module("onnx")
        for part in ("helper", "numpy_helper", "checker"):
            importlib.import_module(f"onnx.{part}")
    return onnx


@contextmanager
def _evaluated(model: Any) -> Iterator[None]:
    """Put a module into evaluation mode, and restore the mode of each part afterwards."""
    modes = [(module, module.training) for module in model.modules()] if isinstance(model, Module) else []
    try:
        if modes:
            model.eval()
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _input_names(model: Any, args: tuple[Any, ...], given: Sequence[str] | None) -> list[str]:
    """Return a name for each leaf of the arguments that is data."""
    parameters = parameter_names(model)
    found: list[str] = []

    def leaf(value: Any, path: tree.Path) -> Any:
        if isinstance(value, Tensor | np.ndarray):
            first, *rest = path
            name = parameters[first] if first < len(parameters) else f"input_{first}"
            found.append("_".join([name, *map(str, rest)]))
        return value

    tree.map_tree(leaf, args)
    return _chosen("input_names", given, found, "inputs")


def _chosen(option: str, given: Sequence[str] | None, known: list[str], what: str) -> list[str]:
    if given is None:
        return known
    names = list(given)
    if len(names) != len(known) or len(set(names)) != len(names):
        raise errors.ONNX_NAMES(
            option=option, given=len(names), names=", ".join(map(repr, names)), count=len(known), what=what
        )
    return names


def _axes(names: list[str], arrays: Sequence[Any], given: Axes | None) -> list[dict[int, str]]:
    """Return for each input the axes that vary, with the names of their sizes."""
    if given is None:
        return [{0: "batch"} if array.ndim else {} for array in arrays]
    example = names[0] if names else "x"
    unknown = [name for name in given if name not in names]
    if unknown:
        problem = f"there is no input {unknown[0]!r}; the inputs are {', '.join(map(repr, names))}"
        raise errors.ONNX_AXES(problem=problem, example=example)
    found: list[dict[int, str]] = []
    for name, array in zip(names, arrays, strict=True):
        wanted = given.get(name, {})
        pairs = dict(wanted) if isinstance(wanted, Mapping) else {axis: f"{name}_{axis}" for axis in wanted}
        for axis in pairs:
            if not -array.ndim <= axis < array.ndim:
                raise errors.ONNX_AXES(problem=f"{name!r} has {array.ndim} axes and no axis {axis}", example=example)
        found.append({axis % array.ndim: str(size) for axis, size in pairs.items()})
    return found


def _samples(names: list[str], arrays: Sequence[Any], axes: Sequence[Mapping[int, str]]) -> Samples:
    """Choose the sizes of the traces, close to the given ones, which the model accepts."""
    given: dict[str, int] = {}
    owners: dict[str, str] = {}
    for name, array, varying in zip(names, arrays, axes, strict=True):
        for axis, size in varying.items():
            extent = array.shape[axis]
            if given.setdefault(size, extent) != extent:
                problem = f"{size!r} is {given[size]} in {owners[size]!r} and {extent} in {name!r}"
                raise errors.ONNX_AXES(problem=problem, example=names[0])
            if extent == 0:
                raise errors.ONNX_AXES(problem=f"the axis {axis} of {name!r} is empty", example=names[0])
            owners.setdefault(size, name)
    # An axis of size 1 would broadcast, so sizes start at 2. Prefer smaller sizes: the model may not accept larger
    # ones.
    first = {name: max(size, 2) for name, size in given.items()}
    down = {name: size >= 4 for name, size in first.items()}
    second = {name: size - 1 if down[name] else size + 1 for name, size in first.items()}
    check = {name: size - 2 if down[name] else size + 3 for name, size in first.items()}
    return Samples(first, second, check)


class _Export:
    """One export: slots of the program and the values they became."""

    def __init__(
        self, onnx: Any, model: Any, program: Program, names: list[str], axes: Sequence[Mapping[int, str]], opset: int
    ) -> None:
        self.onnx = onnx
        self.program = program
        self.names = names
        self.axes = axes
        self.writer = Writer(onnx, opset)
        self.values: dict[int, Value] = {}
        self.kept = _state_names(model)
        self.made: set[str] = set()
        self.renamed: dict[str, str] = {}

    def model(self, output_names: Sequence[str] | None) -> Any:
        """Return the finished model, checked."""
        w, program = self.writer, self.program
        wanted = _chosen("output_names", output_names, _default_outputs(len(program.outputs)), "outputs")
        for name in [*self.names, *wanted]:
            w.unique(name)
        inputs = [
            self._input(slot, name, varying)
            for slot, name, varying in zip(program.inputs, self.names, self.axes, strict=True)
        ]
        for slot, tensor in program.weights:
            self.values[id(slot)] = w.initializer(tensor.array, self.kept.get(id(tensor)) or slot.name or "state")
        for slot, found in program.constants:
            self.values[id(slot)] = w.known(found, slot.dtype)
        for step in program.steps:
            results = written(w, step, [self.values[id(x)] if isinstance(x, Slot) else x for x in step.inputs])
            self.values.update({id(slot): value for slot, value in zip(step.outputs, results, strict=True)})
        self.made = {name for node in w.nodes for name in node.output}
        outputs = [self._output(found, name) for found, name in zip(program.outputs, wanted, strict=True)]
        for node in w.nodes:
            for names in (node.input, node.output):
                for at, name in enumerate(names):
                    names[at] = self.renamed.get(name, name)
        graph = self.onnx.helper.make_graph(w.nodes, program.name, inputs, outputs, _used(w, outputs))
        opsets = [self.onnx.helper.make_opsetid("", w.opset)]
        made = self.onnx.helper.make_model(
            graph,
            opset_imports=opsets,
            producer_name="glassgrad",
            producer_version=__version__,
            ir_version=self.onnx.helper.find_min_ir_version_for(opsets),
        )
        if made.ByteSize() < LARGEST:
            self.onnx.checker.check_model(made, full_check=True)
        return made

    def _input(self, slot: Slot, name: str, varying: Mapping[int, str]) -> Any:
        value = Value(name, slot.dtype, slot.shape)
        self.values[id(slot)] = value
        for axis, size in varying.items():
            self.writer.sources.setdefault(size, (value, axis))
        return self._info(name, slot.dtype, slot.shape)

    def _output(self, found: Any, name: str) -> Any:
        """Name a result: rename the output of its node, or add a node if the value already has a name."""
        w = self.writer
        value = self.values[id(found)] if isinstance(found, Slot) else w.constant(np.asarray(found))
        if value.name not in self.made or value.name in self.renamed:
            w.nodes.append(self.onnx.helper.make_node("Identity", [value.name], [name], name=w.unique(f"/{name}")))
        else:
            self.renamed[value.name] = name
        return self._info(name, value.dtype, value.shape or ())

    def _info(self, name: str, dtype: Any, shape: Sequence[Dim]) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        dims = [str(dim).replace(" ", "") if isinstance(dim, Extent) else dim for dim in shape]
        return self.onnx.helper.make_tensor_value_info(name, kind, dims)


def _default_outputs(count: int) -> list[str]:
    return ["output"] if count == 1 else [f"output_{at}" for at in range(count)]


def _state_names(model: Any) -> dict[int, str]:
    """Return the names of parameters and buffers; a shared one has its first name."""
    if not isinstance(model, Module):
        return {}
    found: dict[int, str] = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        found.setdefault(id(tensor), name)
    return found


def _used(w: Writer, outputs: Sequence[Any]) -> list[Any]:
    """Return the initializers that a node reads."""
    read = {name for node in w.nodes for name in node.input}
    return [one for one in w.initializers if one.name in read]


def write(onnx: Any, model: Any, path: Path, largest: int = LARGEST) -> None:
    """Write the file atomically; a model of `largest` bytes or more is written with its weights in a second file."""
    if model.ByteSize() < largest:
        try:
            write_atomically(path, model.SerializeToString())
        except OSError as error:  # its message names the temporary file
            raise type(error)(error.errno, error.strerror, str(path)) from None
        return
    onnx.save_model(model, str(path), save_as_external_data=True, location=f"{path.name}.data")


__all__ = ["export"]
