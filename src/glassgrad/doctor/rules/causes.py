"""Causes and their consequences: a small graph of findings that explain other findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.rules.rule import SEVERITIES

_LOSS = ("loss does not fall", "loss rises", "loss spikes", "first loss far off", "underfitting", "overfitting")
_NOTHING = ("no gradient", "dead units", "vanishing gradient", "saturated", "never updated", "output without input")
_WILD = (
    "exploding gradient",
    "gradients zigzag",
    "rate above the curvature",
    "rate unfit for the weights",
    "always clipped",
    "saturated",
    "dead units",
    "gradients mostly noise",
)
_ALL = (*_LOSS, *_NOTHING, *_WILD, "loss not finite")

_APART = ("labels do not belong to the inputs",)

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "NaN in the data": (*_ALL, "stopped"),
    "NaN in the targets": (*_ALL, "stopped"),
    "inputs constant": (*_ALL, "labels do not belong to the inputs"),
    "inputs unnormalised": (*_LOSS, *_WILD),
    "method not called": (*_ALL, "no gradients in a step", "zero_grad is missing", "no backward pass", "no step"),
    "loss detached": (*_ALL, "no gradients in a step", "step before backward"),
    "no backward pass": (*_ALL, "no gradients in a step"),
    "step before backward": (*_ALL, "no gradients in a step", "stopped"),
    "no step": (*_LOSS, "never updated", "gradients never used"),
    "gradients never used": (*_ALL, "zero_grad is missing", "no gradients in a step"),
    "clipping before backward": (*_LOSS, *_WILD, "loss not finite"),
    "zero_grad is missing": (*_LOSS, *_WILD, "loss not finite"),
    "clipping after the step": (*_LOSS, *_WILD, "loss not finite"),
    "clipping scaled gradients": (*_LOSS, *_WILD),
    "schedule stepped for each batch": (
        *_LOSS,
        "rate decays to nothing",
        "never updated",
        "rate unfit for the weights",
    ),
    "layers made in forward": (*_LOSS, *_NOTHING, *_WILD, "layers nobody trains"),
    "requires_grad of a module": (*_LOSS, *_WILD),
    "seed set in the loop": (*_LOSS, *_WILD),
    "optimizer made in the loop": (*_LOSS, *_WILD),
    "loss of raw outputs": (*_ALL, "sign of the loss turned", "logarithm of what can reach 0"),
    "arguments of the loss exchanged": (*_ALL, "loss detached", "no gradients in a step"),
    "decision in the loss": (*_ALL, "loss detached", "no gradients in a step"),
    "gradient cut in forward": (*_LOSS, *_NOTHING),
    "axes mixed by a view": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "pairs shuffled apart": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "optimizer of another model": (*_ALL, "no gradients in a step", "parameters without an optimizer"),
    "axes mixed by a reshape": (*_LOSS, "gradients mostly noise", *_APART),
    "softmax of one number": (*_ALL, *_APART, "gradient zero", "first loss far off"),
    "softmax along the wrong axis": (*_LOSS, *_WILD, *_APART, "softmax over the batch"),
    "no logarithm in nll_loss": (*_ALL, *_APART, "sign of the loss turned"),
    "targets out of range": (*_ALL, *_APART, "sign of the loss turned"),
    "softmax for several labels": (*_LOSS, *_APART, "output cannot reach the targets"),
    "labels alike": (*_ALL, "data not shuffled", *_APART),
    "targets seen by the model": ("overfitting",),
    "padding contributes": _LOSS,
    "state carried over": (*_LOSS, "overfitting"),
    "dropout out of the usual": (*_LOSS, *_NOTHING, "gradients mostly noise", *_APART),
    "parameters without an optimizer": (*_LOSS, *_NOTHING),
    "layers nobody trains": (*_LOSS, *_NOTHING),
    "layers shared": (*_LOSS,),
    "weights all alike": (*_ALL, "labels do not belong to the inputs"),
    "nearly everything frozen": (*_LOSS, *_NOTHING, *_WILD, "labels do not belong to the inputs"),
    "sign of the loss turned": (*_ALL, "learning rate out of the usual", "logarithm of what can reach 0"),
    "learning rate out of the usual": (*_ALL, "labels do not belong to the inputs"),
    "weight decay out of the usual": (*_ALL, "labels do not belong to the inputs"),
    "softmax twice": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "softmax over the batch": (*_ALL, "labels do not belong to the inputs"),
    "activation before its loss": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "broadcast in the loss": (*_LOSS, *_WILD),
    "sigmoids too deep": (*_ALL, "labels do not belong to the inputs"),
    "rate decays to nothing": (*_LOSS, "never updated", "rate unfit for the weights"),
    "discriminator has won": _LOSS,
    "output cannot reach the targets": (*_LOSS, "saturated", "vanishing gradient", "output without input"),
    "targets unnormalised": (*_LOSS, *_WILD),
    "returns without scale": (*_LOSS, "gradients mostly noise"),
    "sequence read at its beginning": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "output without input": (*_LOSS, "no gradient", "dead units", "vanishing gradient", "rectifier at the output"),
    "rectifier at the output": (*_LOSS, "dead units"),
    "labels do not belong to the inputs": (*_LOSS, *_WILD),
    "data not shuffled": (*_LOSS, *_WILD),
    "linear layers in a row": (*_LOSS, *_WILD),
    "evaluation mode in training": _LOSS,
    "rate unfit for the weights": (*_LOSS, *_WILD, "loss not finite"),
    "rate above the curvature": (*_LOSS, "gradients zigzag"),
    "vanishing gradient": (*_LOSS, "gradients mostly noise"),
    "dead units": (*_LOSS, "no gradient", "vanishing gradient"),
    "no gradient": _LOSS,
}
"""For each cause, the findings that it explains if both occur and the cause stands above them."""


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with causes first, then their consequences, each with its cause, then mere information.

    A cause is as severe as the worst finding that it explains.

    Example:
        >>> rows = Finding("loss does not fall", "warning", "", ""), Finding("weights all alike", "error", "", "")
        >>> [(one.rule, one.because) for one in ranked(rows)]
        [('weights all alike', ''), ('loss does not fall', 'weights all alike')]
    """
    found = list(findings)
    serious = {one.rule: one for one in reversed(found) if one.severity != "info"}
    because = {one.rule: cause for one in found if (cause := _cause(one.rule, serious))}
    told = [replace(one, because=because.get(one.rule, "")) for one in found]

    def rank(one: Finding) -> tuple[int, int]:
        if one.severity == "info":
            return 2, 0
        if one.because:
            return 1, SEVERITIES.index(one.severity)
        follows = [SEVERITIES.index(other.severity) for other in told if other.because == one.rule]
        return 0, min([SEVERITIES.index(one.severity), *follows])

    return tuple(sorted(told, key=rank))


def _cause(rule: str, serious: Mapping[str, Finding]) -> str:
    """Return the finding that explains another: the first in the order of the table, or the cause of that one."""
    for one, follows in EXPLAINS.items():
        if one == rule:
            return ""  # only findings above a cause explain it, so no two explain each other
        if one in serious and rule in follows:
            return _cause(one, serious) or one
    return ""
