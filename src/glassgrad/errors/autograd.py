"""Messages about backward, grad and what a tensor allows."""

from __future__ import annotations

from glassgrad.errors.kinds import (
    ArgumentError,
    AutogradError,
    GradientLostWarning,
    HiddenBranchWarning,
    Message,
    NonLeafGradWarning,
    ShapeError,
)

NO_GRADIENT_PATH = Message(
    AutogradError,
    "no gradient can be computed at {where}: {what} does not depend on any tensor with requires_grad=True"
    "{cut}.\nExpected: a tensor computed from parameters, with no .item(), .detach(), .numpy() or "
    "no_grad() in between.\nNext: keep the loss a Tensor until backward(); do not set requires_grad on the loss, "
    "which only hides the cut.",
)

BACKWARD_NEEDS_SCALAR = Message(
    AutogradError,
    "backward() without `gradient` needs a tensor with one element, given shape {shape} ({where}).\n"
    "Next: reduce it first, for example .sum() or .mean(), or pass gradient= with shape {shape}.",
)

BACKWARD_NEEDS_REAL = Message(
    AutogradError,
    "backward() without `gradient` needs a real number to minimise, given dtype {dtype} ({where}).\n"
    "Next: make it real, for example with .abs() or .real(), or pass the cotangent as gradient=.",
)

GRADIENT_COUNT = Message(
    ArgumentError,
    "given {given} gradients for {expected} tensors ({where}).\nExpected: one for each tensor; None is possible for a tensor with one element.",
)

GRADIENT_SHAPE = Message(
    ShapeError,
    "`gradient` has shape {given}, expected {expected}, the shape of the tensor that backward() was called on ({where}).",
)

BACKWARD_TWICE = Message(
    AutogradError,
    "{what} was built at {built}, and its graph was freed by backward() at {freed}: backward() cannot use it again.\n"
    "Next: build it inside the loop, before each backward(). Use retain_graph=True only if two losses share one graph on purpose.",
)

SAVED_OVERWRITTEN = Message(
    AutogradError,
    "{what} was saved by {op} at {saved} for its backward pass and overwritten in place at {written}.\n"
    "Next: write it out of place there ({hint}), or copy it with .clone() before that line.",
)

LEAF_OVERWRITTEN = Message(
    AutogradError,
    "{what} is a leaf that requires a gradient and cannot be changed in place ({where}).\n"
    "Next: wrap an update of parameters in `with no_grad():`, or work on {name}.clone().",
)

VIEW_OF_LEAF_OVERWRITTEN = Message(
    AutogradError,
    "a view of a leaf that requires a gradient cannot be changed in place ({where}).\n"
    "Next: wrap an update of parameters in `with no_grad():`, or take a view of its .clone().",
)

NAN_IN_BACKWARD = Message(
    AutogradError,
    "the backward pass of {op} at {where} produces the first {kind}: {count} of {size} elements, the first at {index}{value}.{born}\n"
    "Next: {advice}.",
)

NAN_BEFORE_BACKWARD = Message(
    AutogradError,
    "{what}{born}.\nNext: {advice}.",
)

HIDDEN_BRANCH = Message(
    HiddenBranchWarning,
    "the gradient of {op} ({source}) is NaN in {places}{first}: its cotangent is 0 there, as in a "
    "branch that where() does not take, and 0 times an infinite slope is NaN.\n"
    "Next: mask the input, not the result: safe_where(mask, f, x) computes f only where the mask is True.",
)

NON_LEAF_GRAD = Message(
    NonLeafGradWarning,
    "{what} is not a leaf: it is the result of {op} at {where}, so its .grad is not kept.\n"
    "Next: call .retain_grad() on it before backward().",
)

NOT_REACHED = Message(
    AutogradError,
    "input {index} of grad() was not used in computing the output ({where}).\n"
    "Next: pass allow_unused=True if its gradient may be None.",
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

POST_HOOK_NEEDS_LEAF = Message(
    AutogradError,
    "register_post_accumulate_grad_hook() on {what}, which is not a leaf that requires a gradient ({where}).\n"
    "Next: use register_hook(), which receives the gradient of any other tensor.",
)

MEMORY_OF_TRACKED = Message(
    AutogradError,
    "{op}() on a tensor that requires a gradient ({where}): the tape cannot record it.\n"
    "Next: use x.detach().{op}(...), or an op that returns a new tensor.",
)

LIST_OF_TRACKED = Message(
    GradientLostWarning,
    "a new tensor is made from the values of tensors that require gradients, which cuts the graph ({where}).\n"
    "Next: use glassgrad.stack([...]) or cat to keep the gradient; call .detach() on each if the cut is intended.",
)

REQUIRES_GRAD_DTYPE = Message(
    AutogradError,
    "only floating-point tensors can require gradients, given dtype {dtype} ({where}).\nNext: convert it with .float().",
)

REQUIRES_GRAD_NON_LEAF = Message(
    AutogradError,
    "requires_grad can be switched off only on leaves; {what} is the result of {op} at {where}.\nNext: use .detach().",
)
