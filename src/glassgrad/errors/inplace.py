"""Messages about writing in place and about NumPy functions that meet a Tensor."""

from __future__ import annotations

from glassgrad.errors.kinds import AutogradError, DtypeError, KindError, Message, ShapeError

INPLACE_SHAPE = Message(
    ShapeError,
    "{op} at {where}: the result has shape {given}, but the tensor it overwrites has shape {expected}.\n"
    "Next: make the operand broadcast to {expected}, or write y = {plain}.",
)

INPLACE_DTYPE = Message(
    DtypeError,
    "{op} at {where}: a result of dtype {given} does not fit into a tensor of dtype {expected}.\n"
    "Next: convert the tensor first, for example with .float(), or write y = {plain}.",
)

INPLACE_INTEGER = Message(
    AutogradError,
    "{op} at {where} would write a value that requires a gradient into a tensor of dtype {dtype}, which cannot keep one.\n"
    "Next: make the tensor floating-point with .float(), or write value.detach() if you need no gradient.",
)

INPLACE_READ_ONLY = Message(
    AutogradError,
    "{op} at {where} cannot write to this memory: {reason}.\nNext: work on a copy, x = x.clone().",
)

INPLACE_UNBATCHED = Message(
    AutogradError,
    "{op} at {where}: inside vmap, a value that differs between the examples cannot be written into a tensor that all "
    "of them share.\nNext: make the tensor from the example, for example with zeros_like or .clone() of an input.",
)

UFUNC_METHOD = Message(
    KindError,
    "np.{function}.{method} on a tensor that requires a gradient has no derivative here ({where}).\n"
    "Next: use np.add.reduce, np.multiply.reduce, np.maximum.reduce, np.minimum.reduce, np.logaddexp.reduce or "
    "np.add.accumulate, or .detach() first.",
)

NO_NUMPY_FUNCTION = Message(
    KindError,
    "np.{function} has no differentiable counterpart here, and the tensor requires a gradient ({where}).{nearest}\n"
    "Next: compose it from other functions, or call it on .detach().numpy() if you need only the values.",
)

NUMPY_ARGUMENT = Message(
    KindError,
    "np.{function} was given {argument}={given!r}, which is not supported on a tensor that requires a gradient ({where}).\n"
    "Next: leave it out, or call it on .detach().numpy() if you need only the values.",
)

NO_SUCH_DLPACK = Message(
    KindError,
    "from_dlpack expects an object with __dlpack__ and __dlpack_device__ on the cpu, given {given} ({where}).\n"
    "Next: copy it to the cpu first.",
)

DLPACK_BACKWARDS = Message(
    KindError,
    "a tensor whose elements lie backwards in memory, as x[::-1] does, cannot be shared: other libraries accept only "
    "positive strides ({where}).\nNext: pass x.contiguous(), a copy.",
)

DLPACK_TRACKED = Message(
    KindError,
    "sharing a tensor that requires a gradient with another library would drop the gradient ({where}).\n"
    "Next: pass .detach() if you need only the values.",
)

OPAQUE = Message(
    AutogradError,
    "{function} has no derivative here, and backward() at {where} needs one.\n"
    "Next: call .detach() on its result if you need no gradient of it, or compose it from functions that have a derivative.",
)

MINIMIZE_NO_PATH = Message(
    AutogradError,
    "minimize: the function returned a {kind} that does not depend on x through the tape ({where}).\n"
    "Expected: a Tensor with one element, computed from x.\n"
    "Next: compute it with glassgrad's functions (or NumPy's on tensors), without .item() or .numpy() in between.",
)
