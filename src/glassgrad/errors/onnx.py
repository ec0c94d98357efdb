"""Messages about models in the ONNX format."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, GlassgradError, Message


class OnnxError(GlassgradError, ValueError):
    """A model cannot be written as ONNX, or an ONNX file cannot be read as a module."""


class OnnxWarning(UserWarning):
    """A part of an ONNX file was left out."""


ONNX_OP = Message(
    OnnxError,
    "{op} at {where}{module} cannot be written as ONNX: {reason}.\n"
    "Next: express that line in other functions, or export the part of the model in front of it.",
)
ONNX_PATH_FIRST = Message(
    ArgumentError,
    "onnx.export(model, args, path): the example input comes second and the path third, given {given!r} second.\n"
    "Next: onnx.export(model, x, {given!r})",
)
ONNX_FOLLOWS = Message(
    OnnxError,
    "{what} of {op} at {where}{module} changes with the sizes of the call in a way that ONNX cannot follow: {given}.\n"
    "Next: {advice}",
)
ONNX_DIFFERS = Message(
    OnnxError,
    "the model runs different programs for different sizes: with {first} it applies {one}, with {second} {other}. An ONNX "
    "model is one program.\nNext: export it for fixed sizes, dynamic_axes={{}}, or only for sizes that it treats alike.",
)
ONNX_SIZES = Message(
    OnnxError,
    "the model was traced with {sizes} to let axes of its inputs vary, and failed: {problem}\n"
    "Next: name the axes that vary, as in dynamic_axes={{{example!r}: {{0: 'batch'}}}}, or dynamic_axes={{}} for none.",
)
ONNX_AXES = Message(
    ArgumentError,
    "dynamic_axes: {problem}.\nNext: give for each input a dictionary from axis to name, as in "
    "{{{example!r}: {{0: 'batch'}}}}; axes of one name have one size.",
)
ONNX_NAMES = Message(
    ArgumentError, "{option} has {given} names: {names}; the model has {count} {what}.\nNext: give one for each."
)
ONNX_OPSET = Message(ArgumentError, "opset={given!r}\nNext: give an integer from {low} to {high}.")
ONNX_RANDOM = Message(
    OnnxError,
    "the model draws {label} in each call, and an exported program has no generator.\n"
    "Next: draw outside and pass the numbers as an argument; dropout layers are off in evaluation mode.",
)
ONNX_WRITES = Message(
    OnnxError,
    "the model writes to {what} in each call, and an ONNX model has no memory.\n"
    "Next: return the new value, and pass the old one as an argument.",
)
ONNX_OUTPUT = Message(
    OnnxError, "the model returns {given}; an ONNX model returns tensors.\nNext: return only the tensors."
)
ONNX_DAMAGED = Message(OnnxError, "{path} is not a whole ONNX model: {problem}.\nNext: export or download it again.")
ONNX_EXTERNAL = Message(
    OnnxError,
    "{path}: the weight {name!r} is stored in {location!r}, {problem}.\n"
    "Next: load only models whose weights lie beside them, from a source that you trust.",
)
ONNX_OPERATORS = Message(
    OnnxError,
    "{path} uses operators that glassgrad.onnx.load does not know: {names}.\n"
    "Next: run it with onnxruntime, or export it from its framework with simpler operators.",
)
ONNX_NODE = Message(OnnxError, "{path}: the node {node} ({op}) {problem}.\nNext: {advice}")
ONNX_TEXT = Message(
    OnnxWarning,
    "{path}: the outputs {names} are text and were left out.\nNext: export the model with numbers as labels, or take the "
    "largest of its probabilities.",
)
ONNX_CALL = Message(ArgumentError, "the model takes {expected}; it was given {given}.\nNext: give one tensor for each.")
