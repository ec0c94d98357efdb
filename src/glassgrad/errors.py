"""Every message a user can meet, one entry each.

An entry is a `Message`: the exception type to raise and a template that says what was given, what was
expected, where, and what to do next. Raise it as ``raise errors.NO_GRADIENT_PATH(where=..., ...)``.
Nothing in this file computes anything; the caller supplies the facts.
"""

from __future__ import annotations

from dataclasses import dataclass


class GlassgradError(Exception):
    """Base of all errors that glassgrad raises on purpose."""


class AutogradError(GlassgradError, RuntimeError):
    """A gradient was asked for that cannot be given. A `RuntimeError`, as in PyTorch."""


class ShapeError(GlassgradError, ValueError):
    """Shapes that do not fit together."""


class ArgumentError(GlassgradError, ValueError):
    """An argument with the right type and an impossible value."""


class KindError(GlassgradError, TypeError):
    """An argument of a type that cannot work here."""


class IndexRangeError(GlassgradError, IndexError):
    """An index or a dimension that is out of range."""


class MissingError(GlassgradError, AttributeError):
    """A name that PyTorch or NumPy has and glassgrad has not."""


class NonLeafGradWarning(UserWarning):
    """`.grad` was read on a tensor that does not keep one."""


@dataclass(frozen=True)
class Message:
    """One message: calling it with the facts builds the exception."""

    kind: type[Exception]
    template: str

    def __call__(self, **facts: object) -> Exception:
        return self.kind(self.text(**facts))

    def text(self, **facts: object) -> str:
        """Return the message as a string, for warnings."""
        return self.template.format(**facts)


# --- the tape -----------------------------------------------------------------------------------

NO_GRADIENT_PATH = Message(
    AutogradError,
    "no gradient can be computed: {what} does not depend on any tensor with requires_grad=True"
    "{cut}.\nExpected: a tensor computed from parameters, with no .item(), .detach(), .numpy() or "
    "no_grad() in between.\nNext: keep the loss a Tensor until backward(); do not set requires_grad on the loss, "
    "that hides the cut.",
)

BACKWARD_NEEDS_SCALAR = Message(
    AutogradError,
    "backward() without `gradient` needs a tensor with one element, given shape {shape} ({where}).\n"
    "Next: reduce it first, for example .sum() or .mean(), or pass gradient= with shape {shape}.",
)

GRADIENT_SHAPE = Message(
    ShapeError,
    "`gradient` has shape {given}, expected {expected}, the shape of the tensor that backward() was called on ({where}).",
)

BACKWARD_TWICE = Message(
    AutogradError,
    "{what} was built at {built}, and its graph was freed by backward() at {freed}, so there is nothing left to walk.\n"
    "Next: build it inside the loop, before each backward(). retain_graph=True is right only when two losses share one graph on purpose.",
)

SAVED_OVERWRITTEN = Message(
    AutogradError,
    "{what} was saved by {op} at {saved} for its backward pass and overwritten in place at {written}.\n"
    "Next: write it out of place there ({hint}), or make a copy with .clone() before.",
)

LEAF_OVERWRITTEN = Message(
    AutogradError,
    "{what} is a leaf that requires a gradient and was to be changed in place ({where}).\n"
    "Next: wrap an update of parameters in `with no_grad():`, or work on {name}.clone().",
)

VIEW_OF_LEAF_OVERWRITTEN = Message(
    AutogradError,
    "a view of a leaf that requires a gradient was to be changed in place ({where}).\n"
    "Next: wrap an update of parameters in `with no_grad():`, or take the view of .clone().",
)

NON_LEAF_GRAD = Message(
    NonLeafGradWarning,
    "{what} is not a leaf: it is the result of {op} at {where}, so its .grad is not kept.\n"
    "Next: call .retain_grad() on it before backward().",
)

NOT_REACHED = Message(
    AutogradError,
    "input {index} of grad() was not used in computing the output ({where}).\n"
    "Next: pass allow_unused=True if None is fine for it.",
)

RETAIN_GRAD_WITHOUT_GRAPH = Message(
    AutogradError,
    "retain_grad() on a tensor that does not require a gradient ({where}).\n"
    "Next: compute it from a tensor with requires_grad=True, outside no_grad().",
)

HOOK_WITHOUT_GRAPH = Message(
    AutogradError,
    "register_hook() on a tensor that does not require a gradient ({where}).\n"
    "Next: compute it from a tensor with requires_grad=True, outside no_grad().",
)

REQUIRES_GRAD_DTYPE = Message(
    AutogradError,
    "only floating-point tensors can require gradients, given dtype {dtype} ({where}).\nNext: convert it with .float().",
)

REQUIRES_GRAD_NON_LEAF = Message(
    AutogradError,
    "requires_grad can be switched off only on leaves; {what} is the result of {op} at {where}.\nNext: use .detach().",
)

# --- arrays and shapes --------------------------------------------------------------------------

ASARRAY_TRACKED = Message(
    KindError,
    "{call} would drop the gradient: {what} requires one ({where}).\n"
    "Next: {name}.detach().numpy() if the values are all you need, or use glassgrad's own function on the tensor.",
)

SHAPES_DO_NOT_FIT = Message(
    ShapeError,
    "{op} at {where}: shapes do not fit together: {operands}.\n{reason}",
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

BOOL_NEEDS_ONE = Message(
    ArgumentError,
    "the truth of a tensor with shape {shape} is ambiguous ({where}).\nNext: use .any() or .all().",
)

DIM_OUT_OF_RANGE = Message(
    IndexRangeError,
    "dim {dim} is out of range for {ndim} dimensions ({where}).\nExpected: between {low} and {high}.",
)

EXPECTED_CLASSES = Message(
    KindError,
    "{op} expects class indices as integers, given dtype {dtype} ({where}).\n"
    "Next: .long() them; for class probabilities pass a target of the same shape as the input.",
)

CLASS_OUT_OF_RANGE = Message(
    ArgumentError,
    "{op}: label {label} is out of range for {classes} classes ({where}).\n"
    "Expected: labels between 0 and {last}.",
)

INDEX_FAILED = Message(
    IndexRangeError,
    "{op} at {where} failed on {operands}: {reason}.",
)

DEEPCOPY_NON_LEAF = Message(
    AutogradError,
    "{what} is not a leaf, so a deep copy would lose its history ({where}).\nNext: .detach().clone() it, or copy the parameters.",
)

NO_FORWARD_RULE = Message(
    AutogradError,
    "{op} at {where} has no forward-mode rule.\nNext: use reverse mode (vjp, grad), or give its Function a jvp.",
)

UNKNOWN_KEYWORD = Message(
    KindError,
    "{op}() got an unexpected keyword {given!r} ({where}).{nearest}",
)

BAD_OPTION = Message(
    ArgumentError,
    "{owner}: {name}={given!r} is not possible ({where}).\nExpected: {expected}.",
)

# --- nn and optim -------------------------------------------------------------------------------

STATE_DICT_MISMATCH = Message(
    AutogradError,
    "state_dict does not fit {model}:{missing}{unexpected}{wrong}\n"
    "Next: build the model with the same sizes, or pass strict=False to load what fits.",
)

EMPTY_PARAMETERS = Message(
    ArgumentError,
    "{owner} got no parameters ({where}).\nNext: pass model.parameters() of a model that has some.",
)

NOT_A_LEAF_PARAMETER = Message(
    ArgumentError,
    "{owner} can only update leaves; parameter {index} is the result of {op} ({where}).\n"
    "Next: pass the tensors that you created, not ones computed from them.",
)

WRONG_INPUT = Message(
    ShapeError,
    "{layer} at {where} expects input of shape {expected}, given {given}.",
)

PARAMS_NOT_ITERABLE = Message(
    KindError,
    "{owner} expects an iterable of tensors, given one tensor ({where}).\nNext: put it into a list.",
)

PARAMETER_KIND = Message(
    KindError,
    "{owner} can only update tensors; parameter {index} is a {kind} ({where}).",
)

PARAMETER_TWICE = Message(
    ArgumentError,
    "{owner}: parameter {index} is already in a group ({where}).\nExpected: each parameter once.",
)

UPDATE_MISSING = Message(
    GlassgradError,
    "{owner} has no update(): define update(self, p, g, state, group) and return the new p.",
)

OPTIMIZER_STATE_MISMATCH = Message(
    ArgumentError,
    "the state does not fit this {owner} ({where}): its groups have {given} parameters, expected {expected}.",
)

FORWARD_MISSING = Message(
    GlassgradError,
    "{owner} was called and has no forward().\nNext: define forward(self, ...) in it.",
)

NO_SUCH_DEVICE = Message(
    ArgumentError,
    "device {given!r} is not available ({where}): glassgrad computes on the cpu.\nNext: use 'cpu', or leave the device out.",
)

# --- data files, configurations, runs and the command line ----------------------------------------
# One line each: the command line prints them as `error: ...`.


class InputError(GlassgradError, ValueError):
    """Something a user gave cannot be used: a file, an option, a run directory."""


class RunError(GlassgradError, RuntimeError):
    """A training run that had begun cannot go on or cannot be saved."""


WORDS_MISSING = Message(InputError, "no such file: {path}{nearest}; expected a text file with one word per line")
WORDS_DIRECTORY = Message(InputError, "{path} is a directory; expected a text file with one word per line")
WORDS_UNREADABLE = Message(InputError, "cannot read {path}: {reason}")
WORDS_EMPTY = Message(InputError, "{path} holds no words; expected one word per line")
WORDS_BINARY = Message(
    InputError, "{path} is not a text file ({what} in line {line}); expected one word per line in UTF-8"
)
WORDS_UTF16 = Message(
    InputError, "{path} is UTF-16, expected UTF-8; convert it with: iconv -f UTF-16 -t UTF-8 {path} > words.txt"
)
WORDS_NOT_UTF8 = Message(
    InputError,
    "{path} is not UTF-8 (byte 0x{byte:02x} in line {line}); if it is Latin-1, convert it with: "
    "iconv -f LATIN1 -t UTF-8 {path} > words.txt",
)
WORDS_TAB = Message(InputError, "line {line} of {path} holds a tab; expected one word per line, not a table")
WORDS_LONG_LINE = Message(
    InputError, "line {line} of {path} has {length:,} characters, more than {limit:,}; expected one word per line"
)
WORDS_TOO_FEW = Message(
    InputError,
    "{path} holds {count}; at least {least} words are needed to set some aside for validation and test",
)
CONFIG_UNKNOWN_KEY = Message(InputError, "unknown key {key!r} in {source}{nearest}")
CONFIG_NOT_TOML = Message(InputError, "{source} is not valid TOML: {reason}")
CONFIG_UNREADABLE = Message(InputError, "cannot read {source}: {reason}")
CONFIG_WRONG_TYPE = Message(InputError, "{name} must be {expected}, given {given}")
CONFIG_OUT_OF_RANGE = Message(InputError, "{name} must be {expected}, given {given}")
CONFIG_WRONG_CHOICE = Message(InputError, "{name} must be {expected}, given {given}{nearest}")
CONFIG_NO_EFFECT = Message(InputError, "{name} has no effect on the model {model!r}; leave it out")
CONFIG_BATCH_NORM = Message(
    InputError, "{name} must be at least 2 for the model {model!r} (batch normalisation needs two examples), given {given}"
)
CONFIG_TASK = Message(InputError, "{source} is for `glassgrad train {found}`, expected one for `glassgrad train {expected}`")
OPTIONS_EXCLUDE = Message(InputError, "{first} and {second} cannot be given together: {reason}")

RUN_EXISTS = Message(
    InputError, "{path} already holds a run; go on with it by --resume {path}, or give another --run-dir"
)
RUN_NOT_EMPTY = Message(InputError, "{path} exists and is not an empty directory; give another --run-dir")
RUN_NOT_WRITABLE = Message(InputError, "cannot make the run directory {path}: {reason}")
RUN_MISSING = Message(InputError, "no run at {path}: {reason}")
RUN_LOCKED = Message(InputError, "{path} is being trained by another process")
RUN_DAMAGED = Message(InputError, "{path} is damaged: {reason}")
RUN_CHANGED = Message(
    InputError, "{name} of a run cannot change: it began with {before}, given {after}; start a new run instead"
)
RUN_OTHER_WORDS = Message(
    InputError, "{path} does not hold the words this run was begun with; give that file with --data"
)
RUN_OTHER_SHAPES = Message(InputError, "{path} does not fit the model: {reason}")

RUN_NOT_SAVED = Message(RunError, "cannot save {path}: {reason}{kept}")
RUN_DIVERGED = Message(
    RunError, "the loss became {value} between steps {before:,} and {step:,}; try a smaller --rate than {rate:g}{kept}"
)

# --- scalar -------------------------------------------------------------------------------------

SCALAR_SLOPES = Message(
    ArgumentError,
    "Value with op {op!r} got {children} children and {slopes} slopes; backward() needs one slope per child.\n"
    "Next: Value(result, (a, b), 'name', slopes=(d_result_by_da, d_result_by_db)).",
)

SCALAR_DOT = Message(
    ShapeError,
    "`@` of a vector with {left} values and one with {right}: a dot product needs as many on both sides.",
)

DRAWING_SUFFIX = Message(
    ArgumentError,
    "cannot save a drawing as {path}: its suffix has to be one of {expected}.",
)

SCALAR_TRACED_NUMBER = Message(
    KindError,
    "the function under scalar.compile {what} at {file}:{line}; the outcome could differ from sample to sample, but the "
    "graph is recorded once.\nNext: use ops that choose by themselves (.relu(), .max(), abs()), or compute this outside.",
)

SCALAR_COMPILE_RESULT = Message(
    KindError,
    "the function under scalar.compile returned {given}, expected one Value.\n"
    "Next: combine several results into one, or compile one function for each.",
)

SCALAR_COMPILE_BATCH = Message(
    ShapeError,
    "a compiled scalar function was called with arrays of shapes {shapes}.\n"
    "Expected: at least one sample, arrays of shape (samples,) or (samples, numbers), and the same samples in all.",
)

SCALAR_COMPILE_COLUMNS = Message(
    ShapeError,
    "a compiled expression of {expected} inputs was called with {given} columns.",
)

SCALAR_COMPILE_ENGINE = Message(ArgumentError, "scalar.compile: engine={given!r}, expected 'auto', 'llvm' or 'numpy'.")

SCALAR_COMPILE_REDUCTION = Message(ArgumentError, "backward: reduction={given!r}, expected 'mean' or 'sum'.")

SCALAR_COMPILE_NOT_CALLED = Message(
    ArgumentError,
    "{what} of a compiled scalar function: it has not been traced yet, since that takes a sample.\nNext: call it once with a batch.",
)

# --- ops and arrays of other libraries ------------------------------------------------------------

NEEDS_NUMBERS = Message(
    KindError,
    "{op} needs the numbers themselves, and inside this transformation there are none yet, only a {kind} ({where}).\n"
    "Next: call it outside, or use an op whose result has a fixed shape, such as where() with a mask.",
)

OUT_NOT_SUPPORTED = Message(
    KindError,
    "{op}(out=...) is not possible where gradients are recorded ({where}): the result has to be a new tensor.\n"
    "Next: y = {op}(...); to keep a buffer, copy into it with buffer.copy_(y) or buffer[...] = y.",
)

INDEX_KIND = Message(
    IndexRangeError,
    "indices must be integers or booleans, given an array of dtype {dtype} ({where}).\nNext: convert it with .long().",
)

# --- compile: tracing -----------------------------------------------------------------------------


class CompileError(GlassgradError, RuntimeError):
    """A function that cannot be compiled as it is written; nothing was changed."""


class CompileWarning(UserWarning):
    """Compilation went on, and something will not happen as in eager mode."""


TRACED_VALUE = Message(
    CompileError,
    "{call} at {where} needs the numbers of {what}, but the function is being traced to compile it, and they exist "
    "only when it runs.{origin}\nNext: {advice}",
)
TRACED_SHAPE = Message(
    CompileError,
    "{call} at {where} gives a shape that depends on the numbers in {what}; a compiled function has fixed shapes.{origin}\n"
    "Next: {advice}",
)
TRACED_NUMPY = Message(
    CompileError,
    "{call} at {where} was given {what}, which is being traced to compile the function it is in.{origin}\n"
    "Next: use glassgrad's own function or the tensor's method, or compute it outside of the compiled function.",
)
TRACE_OVER = Message(
    CompileError,
    "{what} belongs to the trace of a compiled function that is over; it has no numbers ({where}).{origin}\n"
    "Next: return it from the compiled function, or write it into an existing tensor with copy_().",
)
TRACE_STORED = Message(
    CompileError,
    "{what} outlives the compiled function that computes it: it was stored in {holder}. A later call would not put "
    "new numbers there.{origin}\nNext: return it from the function, or write it into an existing tensor with copy_().",
)
TRACE_VIEW_WRITE = Message(
    CompileError,
    "the in-place write at {where} goes to {what}, a {op} of another tensor, and cannot be expressed in a compiled "
    "function.\nNext: write it out of place, x = where(mask, value, x) or x = x + ..., on the tensor itself.",
)
TRACE_WRITE_SHAPE = Message(
    CompileError,
    "the in-place write at {where} puts {given} into {what}, which is {expected}.\n"
    "Next: write it out of place (x = x + ...), or convert the value first.",
)
TRACE_STATE_CHANGED = Message(
    CompileError,
    "{what} was {before} when the compiled function began and is {after} when it ends; state keeps its shape and dtype, "
    "since it is written back in place.\nNext: return the new tensor instead of assigning it to .data.",
)
TRACE_OVERLAP = Message(
    CompileError,
    "{first} and {second} lie in the same memory and the compiled function writes to {written}; as separate inputs they "
    "would part.\nNext: keep one tensor and take the views inside of the function.",
)
TRACE_RANDOM = Message(
    CompileError,
    "the function drew from {what} while it was traced; the numbers would be the same in every call.\n"
    "Next: draw with a glassgrad Generator (gg.rand, gg.randint, gg.randperm, ...), or pass the numbers as an argument.",
)
TRACE_RANDOM_CALL = Message(
    CompileError,
    "{call} at {where} cannot be drawn anew in each call of a compiled function, because its arguments are being traced.\n"
    "Next: draw gg.rand or gg.randn and compute from them, or draw outside and pass the result.",
)
TRACE_NUMBER_CHANGED = Message(
    CompileError,
    "the function itself changed the option {name!r} from {before} to {after} while it was traced; a compiled function "
    "does not run that Python code again.\nNext: call the scheduler (or set {name!r}) after the compiled function, outside.",
)
TRACE_LABEL = Message(
    CompileError, "a compiled function was given the index {index}; {what} has {count} rows ({where})."
)
COMPILE_NOT_CALLABLE = Message(KindError, "compile() expects a function, given {kind} ({where}).")
COMPILE_BACKEND = Message(ArgumentError, "compile: backend={given!r} is not possible ({where}).\nExpected: 'auto', 'llvm' or 'numpy'.")
COMPILE_RESULT = Message(
    CompileError,
    "the compiled function returned a {kind}{path}; expected tensors, arrays, numbers, None, and tuples, lists and "
    "dictionaries of them.\nNext: return those, and build the {kind} outside.",
)
COMPILE_OUTSIDE_GRAPH = Message(
    CompileError,
    "an argument of the compiled function, {what}, is the result of {op} at {where} and requires a gradient; gradients do "
    "not flow into a compiled function from outside.\nNext: pass {what}.detach(), or compute it inside of the function.",
)
COMPILE_TRACKED_RESULT = Message(
    CompileError,
    "the compiled function returns {what}, which still requires a gradient.\nNext: call backward() on it inside of the compiled "
    "function, compile the whole step, or return it as .detach().",
)
TOO_MANY_TRACES = Message(
    CompileError,
    "the compiled function was traced {count} times, expected at most {limit}.{reasons}\n"
    "Next: keep what changed the same, or pass it as a tensor.",
)
NOT_CALLED_YET = Message(
    CompileError, "{what} of a compiled function that was not called yet: tracing takes arguments.\nNext: call it once."
)
COMPILED_DIFFERS = Message(
    CompileError,
    "the compiled function differs from eager mode in {result}: {difference}.\n{culprit}"
    "The state is that of the eager call. Next: use backend='numpy' meanwhile, and report this with the graph.",
)
PYTHON_STATE = Message(
    CompileWarning,
    "the function changes {what} (a Python {kind}: {before} became {after}); a compiled call does not run that Python code "
    "again.\nNext: keep it in a tensor, or change it outside of the compiled function.",
)
NO_LLVM = Message(
    CompileWarning, "the native emitter cannot be used ({reason}); the generated NumPy program runs instead, more slowly."
)
NO_SOURCE = Message(CompileError, "{op} at {where} has no NumPy source.\nNext: call the function without it, or write it in other ops.")
SOURCE_NO_LOSS = Message(
    CompileError,
    "backward_source needs a function that returns its loss, a tensor with one element that requires a gradient; it "
    "returned {given}.\nNext: return the loss; or call backward() inside of the function.",
)
FOREIGN_MODULE = Message(
    CompileError,
    "the PyTorch module holds {what} at {path}, which has no counterpart here.\nExpected: {expected}.",
)

# --- transforms: func, vmap, Function, checkpoint ---------------------------------------------------

VMAP_NO_VALUE = Message(
    KindError,
    "inside vmap a tensor stands for {size} examples at once (each of shape {shape}) and has no single value ({where}).\n"
    "Next: replace `if`, float(), .item() and NumPy calls by where() and other functions of the library, or loop over the examples.",
)

# --- manual -------------------------------------------------------------------------------------

MANUAL_SHAPE = Message(
    ShapeError,
    "manual.{layer}: input of shape {given}, expected {expected}, since the weight has shape {weight}.",
)

MANUAL_TARGET = Message(ShapeError, "manual.{loss}: target of shape {target}, expected {expected}.")

MANUAL_OPTION = Message(ArgumentError, "manual.{layer}: {name}={given!r}, expected {expected}.")

MANUAL_BATCH_OF_ONE = Message(
    ShapeError,
    "manual.BatchNorm1d in training got an input of shape {shape}: one number per channel has no variance.\n"
    "Expected: at least two.\nNext: a larger batch, or .eval() to use the running statistics.",
)

MANUAL_NO_PARAMETERS = Message(ArgumentError, "manual.{optimizer} got no parameters to update.")

MANUAL_STATE = Message(ArgumentError, "the state does not fit manual.{layer}:\n  {wrong}")

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
    "Next: keep results tensors (no .item(), float() or .numpy()); {name} takes tensors and containers of them.",
)

OUTPUT_DTYPE = Message(
    KindError,
    "{name}: the function returned a tensor of dtype {dtype}, which has no derivative ({where}).\n"
    "Expected: a real floating-point result. Next: return the rest as aux, with has_aux=True.",
)

OUTPUT_NOT_ONE = Message(
    KindError,
    "{name}: the function returned {given} where one tensor was expected (* stands for a tensor; {where}).\n"
    "Next: return the number to be differentiated alone, or (number, rest) with has_aux=True.",
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
    "{name}: a result does not depend on the primals, and strict=True ({where}).",
)

VMAP_RANDOMNESS = Message(
    ArgumentError,
    "vmap: randomness={given!r} is not possible ({where}).\nExpected: 'error', 'different' or 'same'.",
)

VMAP_DRAW = Message(
    AutogradError,
    "a random draw inside vmap ({where}).\n"
    "Next: say what it means with vmap(..., randomness='different') for each example its own numbers, or 'same'.",
)

VMAP_OUT_NONE = Message(
    ArgumentError,
    "vmap: out_dims is None for a result that differs from example to example ({where}).\nNext: give it a dimension.",
)

VMAP_INPUT_KIND = Message(
    KindError,
    "vmap: in_dims maps over a {given} ({where}).\nExpected: a tensor; use None in in_dims for what is the same for all.",
)

VMAP_IN_DIM = Message(
    ArgumentError,
    "vmap: in_dims has {given!r} for a tensor of shape {shape} ({where}).\n"
    "Expected: None or one of its dimensions.",
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

# --- linear algebra, convolution, losses ------------------------------------------------------------

IMAGE_DIMS = Message(
    ShapeError,
    "{op} expects (batch, channels, {sizes}) or (channels, {sizes}), given shape {given} ({where}).\n"
    "Next: .unsqueeze(0) adds a missing dimension.",
)

CONV_WEIGHT = Message(
    ShapeError,
    "{op} expects a weight with {dims} dimensions (outputs, inputs / groups, kernel), given shape {given} ({where}).",
)

VMAP_BACKWARD = Message(
    AutogradError,
    "backward() inside vmap would store a gradient per example in the .grad of a tensor that is the same for all ({where}).\n"
    "Next: use glassgrad.func.grad inside vmap, or call backward() on the result, outside.",
)

# --- checking a derivation by hand ----------------------------------------------------------------

CHECK_NOT_A_FUNCTION = Message(
    KindError,
    "check_my_backward: {what} is of type {given}, expected a Python function, whose variables can be read.",
)

CHECK_NO_LOSS = Message(
    ArgumentError,
    "check_my_backward: forward returned {given}, expected one number computed from the inputs (the loss).\n"
    "Next: end it with a reduction such as .sum() or .mean(), or weigh the outputs with fixed numbers and sum them.",
)

CHECK_NOTHING_ASSIGNED = Message(
    ArgumentError,
    "check_my_backward: the derivation assigns no gradient of a variable of the forward pass.\nExpected: one of {names}.",
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
    "the function checkpointed at {where} recorded {first} ops when it ran and {second} when it ran again.\n"
    "Next: let it depend on its arguments alone; no counters, no `if` on something that has changed since.",
)

CHECKPOINT_DIFFERS = Message(
    AutogradError,
    "a checkpointed function did something else when it ran again: op {number} was {first}, now it is {second} at {where}.\n"
    "Next: let it depend on its arguments alone; no counters, no `if` on something that has changed since.",
)

CHECKPOINT_OVERWRITTEN = Message(
    AutogradError,
    "a tensor of shape {shape} that the function checkpointed at {where} needs to run again was overwritten in place "
    "at {written}.\nNext: call backward() before the tensor is changed, or pass a .clone() of it.",
)

CONTRACTED_SIZES = Message(
    ShapeError, "{op}: the summed dimensions have sizes {left} on the left and {right} on the right ({where})."
)

PRODUCT_DIMS = Message(
    ShapeError,
    "{op} expects operands with {expected} dimensions, given {given} ({where}).\nNext: matmul takes any number of them.",
)

SQUARE_MATRIX = Message(ShapeError, "{op} expects square matrices (..., n, n), given shape {given} ({where}).")

QR_COMPLETE = Message(
    AutogradError,
    "qr: mode='complete' of a matrix with more rows than columns (shape {given}) has no gradient ({where}): the columns of "
    "q beyond the first are not determined.\nNext: mode='reduced'.",
)

EINSUM = Message(ShapeError, "einsum({equation!r}) on shapes {shapes} ({where}): {reason}.")
