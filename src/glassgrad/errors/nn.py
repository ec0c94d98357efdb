"""Messages about layers, losses and optimizers."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, AutogradError, GlassgradError, KindError, Message, ShapeError

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
