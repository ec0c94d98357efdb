"""Read ONNX files and their weights, and check all metadata of a file before using it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.ops.narrow import is_bfloat16

# Elements that are not numbers, such as class labels.
TEXT = 8


def read(onnx: Any, path: Path) -> Any:
    """Return the model of a file.

    Raises:
        OnnxError: it is not an ONNX file, or it is truncated.
    """
    content = path.read_bytes()
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # the protocol buffer package has several exceptions of its own
        raise errors.ONNX_DAMAGED(path=path, problem="it cannot be parsed") from error
    if not model.graph.node and not model.graph.output:
        raise errors.ONNX_DAMAGED(path=path, problem="it holds no graph")
    if model.functions:
        names = ", ".join(sorted({function.name for function in model.functions}))
        raise errors.ONNX_OPERATORS(path=path, names=f"functions of its own ({names})")
    return model


class Tensors:
    """Reads the tensors of a file.

    Args:
        onnx: the package.
        path: the file, beside which external data may lie.
    """

    def __init__(self, onnx: Any, path: Path) -> None:
        self.onnx = onnx
        self.path = path

    def array(self, tensor: Any) -> Any:
        """Return a tensor as a writable array.

        Raises:
            OnnxError: sizes contradict the data, the element type is unknown, or the data is outside the folder.
        """
        name = tensor.name or "a constant"
        dims = tuple(tensor.dims)
        if any(extent < 0 for extent in dims):
            raise self._damaged(f"{name} has the shape {dims}")
        if tensor.data_type == TEXT:
            return np.array([text.decode("utf-8", "replace") for text in tensor.string_data], object).reshape(dims)
        try:
            dtype = np.dtype(self.onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
        except (KeyError, TypeError, ValueError) as error:
            raise self._damaged(f"{name} has elements of the unknown kind {tensor.data_type}") from error
        if dtype.kind not in "biuf" and not is_bfloat16(dtype):
            raise self._damaged(f"{name} has elements of the kind {dtype}, which glassgrad does not compute with")
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL:
            return self._external(tensor, name, dims, dtype)
        if tensor.HasField("raw_data"):
            return self._of_bytes(tensor.raw_data, name, dims, dtype)
        return self._of_fields(tensor, name, dims, dtype)

    def _of_bytes(self, content: bytes, name: str, dims: tuple[int, ...], dtype: Any) -> Any:
        wanted = math.prod(dims) * dtype.itemsize
        if len(content) != wanted:
            raise self._damaged(f"{name} has the shape {dims} of {dtype}, {wanted} bytes, and holds {len(content)}")
        return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype).reshape(dims)

    def _of_fields(self, tensor: Any, name: str, dims: tuple[int, ...], dtype: Any) -> Any:
        held = max(len(getattr(tensor, field)) for field in _FIELDS)
        if held != math.prod(dims):
            raise self._damaged(f"{name} has the shape {dims}, {math.prod(dims)} elements, and holds {held}")
        found = self.onnx.numpy_helper.to_array(tensor)
        return np.array(found, dtype)

    def _external(self, tensor: Any, name: str, dims: tuple[int, ...], dtype: Any) -> Any:
        facts = {entry.key: entry.value for entry in tensor.external_data}
        location = facts.get("location", "")
        folder = self.path.resolve().parent
        try:
            place = (folder / location).resolve()
            inside = bool(location) and place.is_relative_to(folder) and place != folder
        except (OSError, ValueError):
            inside = False
        if not inside:
            raise self._outside(name, location, "which is not in the folder of the model")
        if not place.is_file():
            raise self._outside(name, location, "which does not exist")
        try:
            offset, length = int(facts.get("offset", 0)), int(facts.get("length", math.prod(dims) * dtype.itemsize))
        except ValueError as error:
            raise self._damaged(f"{name} has an offset or a length that is no number") from error
        if offset < 0 or length < 0 or offset + length > place.stat().st_size:
            raise self._outside(name, location, f"bytes {offset} to {offset + length}, which that file does not have")
        if length != math.prod(dims) * dtype.itemsize:
            raise self._damaged(f"{name} has the shape {dims} of {dtype} and {length} bytes")
        with place.open("rb") as file:
            file.seek(offset)
            return self._of_bytes(file.read(length), name, dims, dtype)

    def _damaged(self, problem: str) -> Exception:
        return errors.ONNX_DAMAGED(path=self.path, problem=problem)

    def _outside(self, name: str, location: str, problem: str) -> Exception:
        return errors.ONNX_EXTERNAL(path=self.path, name=name, location=location, problem=problem)

    def attributes(self, node: Any) -> dict[str, Any]:
        """Return the attributes of a node as Python values and arrays; graphs are left out."""
        return dict(self._values(node))

    def _values(self, node: Any) -> Iterator[tuple[str, Any]]:
        kinds = self.onnx.AttributeProto
        for one in node.attribute:
            match one.type:
                case kinds.TENSOR:
                    yield one.name, self.array(one.t)
                case kinds.STRING:
                    yield one.name, one.s.decode("utf-8", "replace")
                case kinds.STRINGS:
                    yield one.name, [text.decode("utf-8", "replace") for text in one.strings]
                case kinds.FLOAT | kinds.INT | kinds.FLOATS | kinds.INTS:
                    value = self.onnx.helper.get_attribute_value(one)
                    yield one.name, list(value) if one.type in {kinds.FLOATS, kinds.INTS} else value


_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
