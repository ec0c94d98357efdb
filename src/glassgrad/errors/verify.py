"""Messages about checking a derivation by hand."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, AutogradError, KindError, Message
from glassgrad.errors.runs import InputError


class GradcheckError(AutogradError):
    """A gradient is wrong; raised by `gradcheck` on request."""


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

CHECK_NO_SOURCE = Message(
    KindError,
    "check_my_backward: the source of {name}() cannot be read, because no file contains it.\n"
    'Next: give the derivation as text: check_my_backward("""dh = ...""", forward, inputs).',
)

CHECK_SYNTAX = Message(
    ArgumentError,
    "check_my_backward: line {line} of the derivation is not Python ({why}):\n    {text}",
)

EXPLAIN_NO_NUMBER = Message(
    ArgumentError,
    "explain: the function returned {given}, expected one number computed from its arguments.\n"
    "Next: end it with a reduction such as .sum() or .mean().",
)

# --- draw -----------------------------------------------------------------------------------------

DRAW_NO_HISTORY = Message(
    ArgumentError,
    "draw: a tensor of shape {shape} has no graph, because no recorded op computed it.\n"
    "Next: draw a result of tensors with requires_grad=True, outside of no_grad, or a function with its inputs: draw(f, x).",
)
DRAW_FREED = Message(
    ArgumentError,
    "draw: the graph of {op} at {built} was freed by backward() at {freed}.\n"
    "Next: draw before backward(), or call backward(retain_graph=True).",
)
DRAW_NO_OPS = Message(
    ArgumentError,
    "draw: {name} returned {given} that no recorded op computed.\n"
    "Expected: a tensor (or several) computed from floating-point arguments or parameters.",
)
DRAW_KIND = Message(
    KindError,
    "draw: given {given}, expected a tensor with a history, a function or module with its inputs, or a compiled step.",
)
DRAW_VIEW = Message(ArgumentError, "draw: view={given!r}, expected one of: {known}.")
DRAW_VIEW_OF_STEP = Message(
    ArgumentError,
    "draw: view={view!r} needs values, and the program of a compiled function has none.\n"
    "Next: give its inputs as well, draw(step, x), which calls the function eagerly; or use view='ops'.",
)
DRAW_SWEEPS = Message(
    ArgumentError,
    "draw: view='sweeps' of a tensor of shape {shape}: forward mode starts at the inputs, which a tensor does not name.\n"
    "Next: give the function and its inputs, draw(f, x, y, view='sweeps').",
)
DRAW_SWEEPS_NUMBER = Message(
    ArgumentError,
    "draw: view='sweeps' needs one number as the result, and {name} returned something else.\n"
    "Next: end it with a reduction such as .sum() or .mean().",
)
DRAW_NO_NEURONS = Message(
    ArgumentError,
    "draw: view='neurons' needs linear layers one behind the other, and {name} has none.\nNext: view='layers' or 'ops'.",
)
DRAW_NO_MODULE = Message(ArgumentError, "draw: opened={given!r}: there is no such module. The nearest: {known}.")
DRAW_TOO_MANY = Message(
    ArgumentError,
    "draw: the graph of {name} has {count:,} boxes to draw, more than max_nodes={limit}.\nNext: {next}.",
)

# --- gradcheck ------------------------------------------------------------------------------------

GRADCHECK_FAILED = Message(GradcheckError, "{verdict}\nChecked at {where}.")

GRADCHECK_NOTHING = Message(
    KindError,
    "gradcheck of {what}: nothing to vary, no argument (or parameter) holds floating-point numbers ({where}).\n"
    "Next: pass floating-point tensors or arrays; convert integers with .double().",
)

GRADCHECK_RESULT = Message(
    KindError,
    "gradcheck of {what}: the function returned {given}, expected {expected} ({where}).\n"
    "Next: return the result before .item(), float() or .numpy(), which end the graph.",
)

GRADCHECK_NO_SLOPE = Message(
    KindError,
    "gradcheck of {what}: the function returned integers or booleans only, which have no derivative ({where}).\n"
    "Next: return the floating-point result from which they were computed.",
)

GRADCHECK_COMPLEX = Message(
    KindError,
    "gradcheck of {what}: complex numbers cannot be checked ({where}).\n"
    "Next: write the function in real and imaginary parts.",
)

GRADCHECK_PARAMETER = Message(
    KindError,
    "gradcheck of {what}: its parameter {name!r} is of type {given}; expected an object with the arrays `data` and `grad`.\n"
    "Next: wrap the array in glassgrad.manual.Parameter and add to its `grad` in backward().",
)

GRADGRADCHECK_LAYER = Message(
    KindError,
    "gradgradcheck of {what}: a backward pass written in NumPy cannot be differentiated again ({where}).\n"
    "Next: gradcheck() checks its first derivative.",
)

# One line each: the command line prints them as `error: ...`.

EXPLAIN_TARGET = Message(InputError, "cannot explain {target!r}; expected FILE.py:FUNCTION with a file that exists")
EXPLAIN_FUNCTION = Message(InputError, "{file} defines no function {name!r}; expected one of: {known}")
EXPLAIN_ARGUMENT = Message(
    InputError, "{given!r} is not an argument of {target}; expected NAME=VALUE with one of: {names}"
)
EXPLAIN_MISSING = Message(InputError, "{target} needs values for {names}; give them as in: {example}")
EXPLAIN_VALUE = Message(InputError, "{name}={given} is neither a number nor a list of numbers")
