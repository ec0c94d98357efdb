"""Messages about hand-written layers."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, IndexRangeError, KindError, Message, ShapeError

MANUAL_SHAPE = Message(
    ShapeError,
    "manual.{layer}: input of shape {given}, expected {expected}, since the weight has shape {weight}.",
)

MANUAL_TARGET = Message(ShapeError, "manual.{loss}: target of shape {target}, expected {expected}.")

MANUAL_INDEX = Message(
    IndexRangeError, "manual.{layer}: {what} {given} is out of range.\nExpected: between 0 and {last}."
)

MANUAL_OPTION = Message(ArgumentError, "manual.{layer}: {name}={given!r}, expected {expected}.")

MANUAL_BATCH_OF_ONE = Message(
    ShapeError,
    "manual.BatchNorm1d in training got an input of shape {shape}: one number per channel has no variance.\n"
    "Expected: at least two.\nNext: a larger batch, or .eval() to use the running statistics.",
)

MANUAL_NO_PARAMETERS = Message(ArgumentError, "manual.{optimizer} got no parameters to update.")

MANUAL_STATE = Message(ArgumentError, "the state does not fit manual.{layer}:\n  {wrong}")

MANUAL_NOT_A_LAYER = Message(
    KindError,
    "as_function: {given} is not a hand-written layer.\nExpected: forward(x), backward(dout), parameters() and a call.",
)

MANUAL_NO_TWIN = Message(KindError, "{given} has no hand-written counterpart.\nExpected: one of {known}.")
