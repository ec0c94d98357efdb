"""Messages about hand-written layers."""

from __future__ import annotations

from glassgrad.errors.kinds import (
    ArgumentError,
    AutogradError,
    IdleStepWarning,
    IndexRangeError,
    KindError,
    Message,
    ShapeError,
)

MANUAL_SHAPE = Message(
    ShapeError,
    "manual.{layer}: input of shape {given}, expected {expected}, because the weight has shape {weight}.",
)

MANUAL_TARGET = Message(ShapeError, "manual.{loss}: target of shape {target}, expected {expected}.")

MANUAL_INDEX = Message(
    IndexRangeError, "manual.{layer}: {what} {given} is out of range.\nExpected: between 0 and {last}."
)

MANUAL_NO_LAYER = Message(
    KindError,
    "manual.{layer} takes layers, each with forward and backward; argument {position} is of type {kind}.\nNext: {next}",
)

MANUAL_OPTION = Message(ArgumentError, "manual.{layer}: {name}={given!r}, expected {expected}.")

MANUAL_BATCH_OF_ONE = Message(
    ShapeError,
    "manual.BatchNorm1d in training got an input of shape {shape}: one number per channel has no variance.\n"
    "Expected: at least two.\nNext: a larger batch, or .eval() to use the running statistics.",
)

MANUAL_BACKWARD_FIRST = Message(
    AutogradError,
    "manual.{layer}.backward() ran before forward(): it needs values that forward keeps.\n"
    "Next: out = layer(x) first, then layer.backward(dout) with the gradient of the loss with respect to `out`.",
)

MANUAL_OTHER_FORWARD = Message(
    ShapeError,
    "manual.{layer}.backward() got a gradient of shape {given}, but its latest forward() returned shape {expected}.\n"
    "It keeps the values of its latest call: was it called again in between, with another batch?\n"
    "Next: call backward() before the next forward(), and give it the gradient of what forward() returned.",
)

MANUAL_OTHER_MODE = Message(
    AutogradError,
    "manual.{layer}.backward() runs in {backward} mode, but the latest forward() ran in {forward} mode, and the values "
    "it keeps are from that call.\nNext: call forward() and backward() of a batch in the same mode, one after the other.",
)

MANUAL_STALE = Message(
    AutogradError,
    "manual.{layer}.backward() ran a second time after {count} calls of forward(): only the values of the latest call "
    "are kept, so the gradient of the earlier one would be wrong.\n"
    "Next: alternate forward() and backward(); or use a separate layer for each place, all with the same Parameter.",
)

MANUAL_NO_GRADIENTS = Message(
    IdleStepWarning,
    "manual.{optimizer}.step() changed nothing: none of its {count} parameters has a gradient.\n"
    "Next: call net.backward(loss.backward()) before step(), and zero_grad() only after it.",
)

MANUAL_OPTIMIZER_STATE = Message(
    ArgumentError,
    "the state does not fit manual.{optimizer}: parameter {place}: {name} has shape {given}, expected {expected}.",
)

MANUAL_NO_PARAMETERS = Message(ArgumentError, "manual.{optimizer} got no parameters to update.")

MANUAL_STATE = Message(ArgumentError, "the state does not fit manual.{layer}:\n  {wrong}")

MANUAL_NOT_A_LAYER = Message(
    KindError,
    "as_function: {given} is not a hand-written layer.\nExpected: forward(x), backward(dout), parameters() and a call.",
)

MANUAL_NO_TWIN = Message(KindError, "{given} has no hand-written counterpart.\nExpected: one of {known}.")

MANUAL_NORM = Message(
    AutogradError,
    "manual.clip_grad_norm_: the norm of the gradients is {norm}.\n"
    "Next: look for the first NaN with doctor.check_up; without error_if_nonfinite it would spread to all gradients.",
)
