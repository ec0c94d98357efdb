"""Messages about data sets and loaders."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, FileError, GlassgradError, KindError, Message, ShapeError

NO_EXAMPLES = Message(
    ArgumentError,
    "{owner} at {where} got a data set without examples.\nNext: check the path and the filter that created it.",
)

BATCH_TOO_LARGE = Message(
    ArgumentError,
    "DataLoader at {where}: batch_size={batch} with drop_last=True gives no batch from {count} examples.\n"
    "Next: choose a batch of at most {count}, or leave out drop_last.",
)

LENGTHS_DIFFER = Message(
    ShapeError,
    "{owner} at {where} needs tensors of equal length, given lengths {given}.",
)

SPLIT_SIZES = Message(
    ArgumentError,
    "random_split at {where}: {given} makes {total} examples, the data set has {count}.\n"
    "Next: give sizes that add up to {count}, or shares that add up to 1.",
)

LOADER_OPTIONS = Message(
    ArgumentError,
    "DataLoader at {where}: {first} excludes {second}.",
)

DATASET_INCOMPLETE = Message(
    GlassgradError,
    "{owner} was called for an example but does not define {method}.",
)

COLLATE_LENGTHS = Message(
    ShapeError,
    "the examples of a batch have different numbers of parts: {given}.\nNext: give a collate_fn that combines them.",
)

COLLATE_SHAPES = Message(
    ShapeError,
    "the examples of a batch have different shapes: {given}.\n"
    "Next: give TensorDataset(inputs, targets) if these are the arrays of a data set, or a collate_fn that pads examples\n"
    "of different sizes.",
)

COLLATE_KIND = Message(
    KindError,
    "examples of type {kind} cannot be combined into a batch.\n"
    "Expected: tensors, arrays, numbers, strings, or tuples and dictionaries of them.\n"
    "Next: give a collate_fn.",
)

CANNOT_SAVE = Message(
    KindError,
    "save at {where}: {path} is a {kind}, which cannot be stored: a file holds only tensors and plain values, so that "
    "loading it runs no code.\nNext: store model.state_dict(), or the numbers in the object.",
)

FOREIGN_PICKLE = Message(
    ArgumentError,
    "load at {where}: {file} is a pickle of PyTorch, and loading it could run any code.\n"
    "Next: convert it once where PyTorch is installed: safetensors.torch.save_file(torch.load(path), new_path).",
)

WHOLE_OBJECTS = Message(
    ArgumentError,
    "load at {where}: {file} holds whole objects, and loading them can run any code.\n"
    "Next: save state_dict() instead, or load(path, weights_only=False) if you trust the file.",
)

NOT_SAFETENSORS = Message(
    ArgumentError,
    "load at {where}: {file} is cut short or not a safetensors file ({reason}).",
)

CANNOT_WRITE = Message(
    FileError,
    "save at {where}: {file} could not be written: {reason}. The previous file is unchanged.",
)

DEFAULT_DTYPE = Message(
    ArgumentError,
    "set_default_dtype({given}) at {where}: new tensors hold floating-point numbers.\n"
    "Next: float32, float64 or float16; for others give dtype= where tensors are made.",
)

ESTIMATOR_MODULE = Message(
    ShapeError,
    "the module of the estimator gives {given}; expected {expected}.\n"
    "Next: end it with a layer of that size, or give a function (features, outputs) that makes it.",
)
ESTIMATOR_CLASSES = Message(
    ArgumentError,
    "partial_fit was given the labels {given}, which are not among the classes {known}.\n"
    "Next: name all of them in the first call, partial_fit(X, y, classes=[...]).",
)
ESTIMATOR_WEIGHTS = Message(
    ArgumentError,
    "sample_weight has {given}; expected a weight of 0 or more for each example, and at least one above 0.\n"
    "Next: look at where the weights come from; a weight of 0 leaves an example out.",
)
