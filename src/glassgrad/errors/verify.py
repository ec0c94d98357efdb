"""Messages about checking a derivation by hand."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, KindError, Message

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
