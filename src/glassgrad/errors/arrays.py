"""Messages about ops on arrays: shapes, dtypes, indices, other libraries' arrays."""

from __future__ import annotations

from glassgrad.errors.kinds import (
    ArgumentError,
    AutogradError,
    DtypeError,
    IndexRangeError,
    KindError,
    Message,
    NoValueError,
    ShapeError,
)

CONTRACTED_SIZES = Message(
    ShapeError, "{op}: the summed dimensions have sizes {left} on the left and {right} on the right ({where})."
)

PRODUCT_DIMS = Message(
    ShapeError,
    "{op} expects operands with {expected} dimensions, given {given} ({where}).\nNext: use matmul, which takes any number of dimensions.",
)

FLOATS_ONLY = Message(
    DtypeError,
    "{op} expects floating-point or complex numbers, as in PyTorch, given {dtype} ({where}).\n"
    "Next: call x.float().{op}(), or pass dtype= if the function has it.",
)

IMAGE_DTYPE = Message(
    KindError,
    "{op} takes images that are {expected}, given {given} ({where}): rounding would spoil the result.\n"
    "Next: x.float(), or x.double().",
)

SQUARE_MATRIX = Message(ShapeError, "{op} expects square matrices (..., n, n), given shape {given} ({where}).")

QR_COMPLETE = Message(
    AutogradError,
    "qr: mode='complete' of a matrix with more rows than columns (shape {given}) has no gradient ({where}): the columns of "
    "q that complete the basis are not unique.\nNext: use mode='reduced'.",
)

EINSUM = Message(ShapeError, "einsum({equation!r}) on shapes {shapes} ({where}): {reason}.")

ASARRAY_TRACKED = Message(
    KindError,
    "{call} would drop the gradient: {what} requires one ({where}).\n"
    "Next: use {name}.detach().numpy() if you need only the values, or glassgrad's own function on the tensor.",
)

SHAPES_DO_NOT_FIT = Message(
    ShapeError,
    "{op} at {where}: shapes do not fit together: {operands}.\n{reason}",
)

OP_TAKES_ARRAYS = Message(
    KindError,
    "{op} at {where} takes tensors and arrays, given {operands}.\nNext: make a tensor of the list: gg.tensor(...).",
)

OP_FAILED = Message(
    ArgumentError,
    "{op} at {where} failed on {operands}: {reason}",
)

OP_WRONG_KIND = Message(
    KindError,
    "{op} at {where} cannot work on {operands}: {reason}",
)

ITEM_NEEDS_ONE = Message(
    ArgumentError,
    "item() needs a tensor with one element, given shape {shape} ({where}).\nNext: index it first, or use .tolist().",
)

INDEX_NEEDS_INTEGER = Message(
    KindError,
    "A tensor used as an index or a count needs one integer, given shape {shape} of {dtype} ({where}).\n"
    "Next: index it first, or use int(x).",
)

BOOL_NEEDS_ONE = Message(
    ArgumentError,
    "the truth of a tensor with shape {shape} is ambiguous ({where}).\nNext: use .any() or .all().",
)

NO_NUMBERS = Message(
    KindError,
    "cannot make a tensor from this {kind} ({where}): it contains something that is not a number.\n"
    "Next: look for None, strings and objects in it.",
)

RAGGED_ROWS = Message(
    ShapeError,
    "cannot make a tensor from rows of different lengths ({where}).\n"
    "Next: pad them to one length (nn.utils.rnn.pad_sequence), or make one tensor per row.",
)

FROM_NUMPY_KIND = Message(
    KindError,
    "from_numpy expects a NumPy array, given {kind} ({where}).\nNext: use glassgrad.tensor or as_tensor.",
)

FROM_NUMPY_DTYPE = Message(
    KindError,
    "from_numpy shares the array's memory and cannot share dtype {dtype} ({where}).\n"
    "Expected: booleans, integers, floats or complex numbers in this machine's byte order.\n"
    "Next: glassgrad.tensor converts other byte orders; convert text, dates and objects to numbers first.",
)

MASKED_ARRAY = Message(
    KindError,
    "a Tensor keeps no mask, given an array of shape {shape} with {count} masked elements ({where}).\n"
    "Next: use .filled(value) to replace them, .compressed() to drop them, or .data for the values under the mask.",
)

DIM_OUT_OF_RANGE = Message(
    IndexRangeError,
    "dim {dim} is out of range for {ndim} dimensions ({where}).\nExpected: between {low} and {high}.",
)

EXPECTED_CLASSES = Message(
    KindError,
    "{op} expects class indices as integers, given dtype {dtype} ({where}).\n"
    "Next: convert them with .long(); for class probabilities pass a target of the same shape as the input.",
)

CLASS_OUT_OF_RANGE = Message(
    IndexRangeError,
    "{op}: label {label} is out of range for {classes} classes ({where}).\nExpected: labels between 0 and {last}.",
)

INDEX_FAILED = Message(
    IndexRangeError,
    "{op} at {where} failed on {operands}: {reason}.",
)

DEEPCOPY_NON_LEAF = Message(
    AutogradError,
    "{what} is not a leaf, so a deep copy would lose its history ({where}).\nNext: copy it with .detach().clone(), or copy the parameters.",
)

NO_FORWARD_RULE = Message(
    AutogradError,
    "{op} at {where} has no forward-mode rule.\nNext: use reverse mode (vjp, grad), or give its Function a jvp.",
)

NOT_SIZES = Message(
    KindError,
    "Tensor() takes one value, or sizes as whole numbers; given a {kind} and more ({where}).\n"
    "Next: glassgrad.tensor(value, requires_grad=True).",
)

UNKNOWN_KEYWORD = Message(
    KindError,
    "{op}() got an unexpected keyword {given!r} ({where}).{nearest}",
)

INDEX_DOES_NOT_FIT = Message(
    IndexRangeError, "A {given}, at dimension {first}, does not fit a tensor of shape {shape} ({where})."
)

DIMS_TWICE = Message(
    ArgumentError,
    "dims={dims} names one of the {ndim} dimensions twice ({where}).\nExpected: each dimension at most once.",
)

BAD_OPTION = Message(
    ArgumentError,
    "{owner}: {name}={given!r} is not possible ({where}).\nExpected: {expected}.",
)

NEEDS_NUMBERS = Message(
    NoValueError,
    "{op} needs concrete values, but a tensor inside this transformation has only a {kind} ({where}).\n"
    "Next: call it outside, or use an op whose result has a fixed shape, such as where() with a mask.",
)

OUT_NOT_SUPPORTED = Message(
    KindError,
    "{op}(out=...) is not possible while gradients are recorded ({where}): the result has to be a new tensor.\n"
    "Next: write y = {op}(...); to fill a buffer, use buffer.copy_(y) or buffer[...] = y.",
)

INDEX_KIND = Message(
    IndexRangeError,
    "indices must be integers or booleans, given an array of dtype {dtype} ({where}).\nNext: convert it with .long().",
)

INDEX_HUGE = Message(
    IndexRangeError,
    "index {index} is out of range for every dimension ({where}).\n"
    "Next: find where it comes from; -1 cast to an unsigned integer gives such a number.",
)

IMAGE_DIMS = Message(
    ShapeError,
    "{op} expects (batch, channels, {sizes}) or (channels, {sizes}), given shape {given} ({where}).\n"
    "Next: .unsqueeze(0) adds a missing dimension.",
)

CONV_WEIGHT = Message(
    ShapeError,
    "{op} expects a weight with {dims} dimensions (outputs, inputs / groups, kernel), given shape {given} ({where}).",
)

COMPLEX_REFUSED = Message(
    KindError,
    "{op} expects real numbers, given dtype {dtype} ({where}).\nNext: take .real, .imag or .abs() of it.",
)

PHASE_DEPENDENT = Message(
    AutogradError,
    "{op}: the gradient depends on the phases of complex vectors, which are not determined ({where}).\n"
    "Next: make the loss independent of the phases, for example by .abs() of the vectors.",
)

FFT_REAL = Message(
    KindError, "{op} expects real numbers, given dtype {dtype} ({where}).\nNext: use fft for complex ones."
)
