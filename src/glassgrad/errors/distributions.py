"""Messages about probability distributions."""

from __future__ import annotations

from glassgrad.errors.kinds import ArgumentError, KindError, Message, NoFormulaError

DISTRIBUTION_PARAMETER = Message(
    ArgumentError,
    "{owner}: parameter {name} does not satisfy {expected} ({where}): {given}.\n"
    "Next: first map the output of a network into that range, e.g. with exp, softplus, sigmoid or softmax.",
)

DISTRIBUTION_VALUE = Message(
    ArgumentError,
    "{owner}.{method}: the value lies outside of the support, {expected} ({where}): {given}.\n"
    "Next: pass values that sample() could return, or validate_args=False to accept a meaningless result.",
)

DISTRIBUTION_VALUE_KIND = Message(KindError, "{owner}.{method} expects a tensor, given {kind} ({where}).")

DISTRIBUTION_SHAPE = Message(
    ArgumentError,
    "{owner}.{method}: a value of shape {given} does not broadcast with batch_shape {batch} and event_shape {event} "
    "({where}).",
)

DISTRIBUTION_ONE_OF = Message(ArgumentError, "{owner} expects exactly one of {names} ({where}).")

NO_FORMULA = Message(
    NoFormulaError, "{owner} has no {what} ({where}).\nNext: average over {owner}.sample((1000,)) for an estimate."
)

NO_PATHWISE = Message(
    NoFormulaError,
    "{owner} has no rsample: its samples do not depend smoothly on its parameters ({where}).\n"
    "Next: sample() and log_prob() for a score-function gradient, or a relaxed distribution.",
)

NO_KL = Message(
    NoFormulaError,
    "kl_divergence knows no formula for {left} and {right} ({where}).\n"
    "Next: average p.log_prob(x) - q.log_prob(x) over x = p.rsample((1000,)), or add a formula with register_kl.",
)

DISTRIBUTION_DIMS = Message(
    ArgumentError, "{owner} expects {name} to be a tensor of at least {dims} dimension(s) ({where})."
)

TRANSFORM_NO_INVERSE = Message(NoFormulaError, "{owner} has no inverse, or no log-determinant ({where}).")

NO_TRANSFORM_FOR = Message(
    NoFormulaError,
    "no transform maps the real numbers to {constraint} ({where}).\nNext: add one with register(constraint, factory).",
)
