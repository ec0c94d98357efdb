"""Messages about transforms: func, vmap, Function, checkpoint."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, AutogradError, KindError, Message, NoValueError, ShapeError

TREE_DIFFERS = Message(
    ArgumentError,
    "{name}: given the structure {given}, expected {expected} ({where}).\n"
    "Next: pass containers of the same kind, length and keys (* stands for a tensor).",
)

ARGNUMS = Message(
    ArgumentError,
    "{name}: argnums={given!r} does not name arguments of a call with {count} of them ({where}).\n"
    "Expected: an int, or a tuple of different ints, from 0 to the number of positional arguments less one.",
)

AUX_MISSING = Message(
    KindError,
    "{name} with has_aux=True expects the function to return (result, aux), given {given} ({where}).\n"
    "Next: return a tuple of two, or leave has_aux out.",
)

OUTPUT_NOT_TENSOR = Message(
    KindError,
    "{name}: the function returned {given} where a tensor was expected ({where}).\n"
    "Next: return tensors or containers of tensors; do not convert them with .item(), float() or .numpy().",
)

OUTPUT_DTYPE = Message(
    KindError,
    "{name}: the function returned a tensor of dtype {dtype}, which has no derivative ({where}).\n"
    "Expected: a real floating-point result. Next: return the rest as aux, with has_aux=True.",
)

OUTPUT_NOT_ONE = Message(
    KindError,
    "{name}: the function returned {given} where one tensor was expected (* stands for a tensor; {where}).\n"
    "Next: return only the number to differentiate, or (number, rest) with has_aux=True.",
)

OUTPUT_NOT_SCALAR = Message(
    AutogradError,
    "{name}: the function returned a tensor of shape {shape}, expected one number, shape () ({where}).\n"
    "Next: reduce it, for example .sum() or .mean(), or use jacrev for the Jacobian.",
)

INPUT_NOT_TENSOR = Message(
    KindError,
    "{name}: {what} holds a {given}, which has no derivative ({where}).\n"
    "Expected: floating-point tensors, arrays and numbers, and containers of them. Next: choose others with argnums, "
    "or close over it.",
)

INTEGER_INPUT = Message(
    KindError,
    "{name}: {what} has dtype {dtype}; derivatives exist for floating-point numbers only ({where}).\n"
    "Next: convert it with .float(), or choose another argument with argnums.",
)

COMPLEX_INPUT = Message(
    KindError,
    "{name}: {what} has dtype {dtype}; complex numbers cannot be differentiated yet ({where}).\n"
    "Next: write the function in real and imaginary parts.",
)

DIRECTION_SHAPE = Message(
    ShapeError,
    "{name}: {what} has shape {given}, expected {expected} ({where}).",
)

TANGENTS_COUNT = Message(
    ArgumentError,
    "{name}: given {given} tangents for {expected} primals ({where}).\nNext: pass one tangent per primal.",
)

PRIMALS_TUPLE = Message(
    KindError,
    "{name}: primals and tangents are tuples, given {given} ({where}).\nNext: write (x,) for a single one.",
)

STRICT_INDEPENDENT = Message(
    AutogradError,
    "{name} with strict=True: a result does not depend on the primals ({where}).",
)

VMAP_RANDOMNESS = Message(
    ArgumentError,
    "vmap: randomness={given!r} is not possible ({where}).\nExpected: 'error', 'different' or 'same'.",
)

VMAP_DRAW = Message(
    AutogradError,
    "a random draw inside vmap ({where}).\n"
    "Next: choose vmap(..., randomness='different') to draw for each example, or 'same' to draw once for all.",
)

VMAP_OUT_NONE = Message(
    ArgumentError,
    "vmap: out_dims is None for a result that differs from example to example ({where}).\nNext: give it a dimension.",
)

VMAP_INPUT_KIND = Message(
    KindError,
    "vmap: in_dims maps over a {given} ({where}).\nExpected: a tensor; use None in in_dims for an argument that all examples share.",
)

VMAP_IN_DIM = Message(
    ArgumentError,
    "vmap: in_dims has {given!r} for a tensor of shape {shape} ({where}).\nExpected: None or one of its dimensions.",
)

VMAP_NOTHING_MAPPED = Message(
    ArgumentError,
    "vmap: no argument is mapped ({where}).\nNext: give at least one a dimension in in_dims.",
)

VMAP_SIZES = Message(
    ArgumentError,
    "vmap: the mapped dimensions have different sizes: {sizes} ({where}).\n"
    "Next: check in_dims; all arguments need the same number of examples.",
)

UNPACKED_WRONG = Message(
    KindError,
    "unpack_hook returned {given} for something that {op} at {where} saved; expected a tensor of shape {expected}.",
)

CHECKPOINT_KEEP = Message(
    ArgumentError,
    "checkpoint: keep={given} names no primitives ({where}).\n"
    "Expected: names such as 'matmul', 'linear' or 'exp', as the op table lists them.",
)

CHECKPOINT_SEGMENTS = Message(
    ArgumentError,
    "checkpoint_sequential: segments={given} for {count} layers ({where}).\n"
    "Expected: between 1 and the number of layers, or None for about sqrt(2 n) of them.",
)

CHECKPOINT_LENGTH = Message(
    AutogradError,
    "the function checkpointed at {where} recorded {first} ops in its first run and {second} in its second.\n"
    "Next: let it depend only on its arguments: no counters, and no `if` on state that changes between the runs.",
)

CHECKPOINT_DIFFERS = Message(
    AutogradError,
    "a checkpointed function computed something else in its second run: op {number} was {first}, now it is {second} at {where}.\n"
    "Next: let it depend only on its arguments: no counters, and no `if` on state that changes between the runs.",
)

CHECKPOINT_OVERWRITTEN = Message(
    AutogradError,
    "a tensor of shape {shape} that the function checkpointed at {where} needs to run again was overwritten in place "
    "at {written}.\nNext: call backward() before the tensor is changed, or pass a .clone() of it.",
)

CHECKPOINT_WRITES = Message(
    AutogradError,
    "the function checkpointed at {where} writes in place, at {written}, to memory that existed before the call. "
    "The backward pass runs the function again, so the write happened twice and the second run read other numbers.\n"
    "Next: write it out of place, return the new value and store it outside of the checkpoint, or leave the checkpoint out.",
)

VMAP_BACKWARD = Message(
    AutogradError,
    "backward() inside vmap would store a gradient per example in the .grad of a tensor that all examples share ({where}).\n"
    "Next: use glassgrad.func.grad inside vmap, or call backward() on the result, outside.",
)

VMAP_NO_VALUE = Message(
    NoValueError,
    "inside vmap a tensor stands for {size} examples at once (each of shape {shape}) and has no single value ({where}).\n"
    "Next: replace `if`, float(), .item() and NumPy calls by where() and other functions of the library, or loop over the examples.",
)

VMAP_ESCAPED = Message(
    NoValueError,
    "this tensor was made inside a call of vmap that has ended: it stands for {size} examples at once (each of shape {shape}) "
    "and has no single value ({where}).\nNext: return it from the mapped function; what vmap returns holds all examples.",
)

FUNCTION_MISSING = Message(
    KindError,
    "this Function has no {name} ({where}).\nNext: define it as a static method: @staticmethod def {name}(ctx, ...).",
)

FUNCTION_CALLED = Message(
    KindError,
    "{name} is a Function and has no instances ({where}).\nNext: write {name}.apply(...).",
)

FUNCTION_DIRTY = Message(
    KindError,
    "mark_dirty() is not supported ({where}).\nNext: compute the result in a new tensor and return that.",
)

FUNCTION_RULE = Message(
    KindError,
    "{function}.{rule}, for the call at {where}, returned {given}; expected {expected}.",
)

ONCE_DIFFERENTIABLE = Message(
    AutogradError,
    "the backward of {function}, applied at {where}, is marked once_differentiable, so there is no second derivative.\n"
    "Next: write that backward in differentiable ops and remove the mark.",
)

CUSTOM_RULE_MISSING = Message(
    KindError,
    "{name} has no derivative yet ({where}).\nNext: call {name}.{rule}(...) after its definition.",
)

CUSTOM_GRADIENTS = Message(
    KindError,
    "the backward of {name} returned {given} where a tuple of {expected} gradients was expected ({where}).\n"
    "Next: return one for each differentiable argument, or None if there is no gradient.",
)

STRAIGHT_SHAPE = Message(
    ShapeError,
    "straight_through: the function returned {given}, expected a tensor of the argument's shape {expected} ({where}).",
)

ROOT_SHAPE = Message(
    ShapeError,
    "custom_root: the residual has shape {given}, expected that of the root, {expected} ({where}).",
)

STACK_MODELS = Message(
    ArgumentError,
    "stack_module_state expects at least one model and all of one class, given {count} ({where}).",
)
