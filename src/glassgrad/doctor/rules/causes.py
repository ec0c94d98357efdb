"""Causes and their consequences: a small graph of findings that explain other findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from glassgrad.doctor.facts import Finding
from glassgrad.doctor.reading.names import titles
from glassgrad.doctor.rules.rule import SEVERITIES

_LOSS = titles(
    "loss does not fall; loss rises; loss spikes; first loss far off; learns less than a probe; examples not learnt; "
    "underfitting; overfitting; validation far worse than training"
)
_NOTHING = ("no gradient", "dead units", "vanishing gradient", "saturated", "never updated", "output without input")
_WILD = titles(
    "exploding gradient; gradients zigzag; rate above the curvature; rate unfit for the weights; always clipped; "
    "saturated; dead units; gradients mostly noise"
)
_ALL = (*_LOSS, *_NOTHING, *_WILD, "loss not finite")

_VAGUE = frozenset({*_ALL, "no gradients in a step", "labels do not belong to the inputs", "output without input"})
"""Findings that tell what a fault does, and seldom where it stands."""

_VALIDATED = "overfitting", "validation far worse than training"
_APART = ("labels do not belong to the inputs",)

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "NaN in the data": (*_ALL, "stopped"),
    "NaN in the targets": (*_ALL, "stopped"),
    "inputs constant": (*_ALL, "labels do not belong to the inputs"),
    "inputs unnormalised": (*_LOSS, *_WILD),
    "method not called": (*_ALL, "no gradients in a step", "zero_grad is missing", "no backward pass", "no step"),
    "loss detached": (
        *_ALL,
        "no gradients in a step",
        "step before backward",
        "optimizer of another model",
    ),
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
    "result never used": (*_LOSS, *_NOTHING),
    "loss overwritten": (*_LOSS, *_NOTHING, "layers nobody trains"),
    "loop ends in its first round": (*_LOSS, "overfitting"),
    "same batch in each step": (*_LOSS, "overfitting"),
    "sign instead of a sum": (*_ALL, *_APART, "sign of the loss turned"),
    "added to itself": (*_LOSS, *_WILD),
    "copies in a batch": (*_ALL, *_APART, "inputs constant"),
    "loss of one example": (*_LOSS, *_WILD, *_APART),
    "input without effect": (*_LOSS, *_NOTHING, *_APART),
    "loaded weights drawn anew": _LOSS,
    "copy follows at once": (*_LOSS, "running statistics do not arrive"),
    "betas exchanged": (*_LOSS, *_WILD),
    "schedule never stepped": _LOSS,
    "schedule goes round": (*_LOSS, "rate unfit for the weights"),
    "warm-up begins again": (*_LOSS, "rate unfit for the weights", "never updated"),
    "step without new gradients": (*_LOSS, *_WILD),
    "same targets in each step": _LOSS,
    "outputs opposite to the targets": (*_ALL, *_APART),
    "parameter not registered": (*_LOSS, *_NOTHING, "layers nobody trains", "stopped"),
    "dropout at the output": (*_LOSS, "gradients mostly noise"),
    "targets of 0 instead of -1": (*_LOSS, *_NOTHING),
    "inputs change from epoch to epoch": (
        *_ALL,
        *_APART,
        "inputs unnormalised",
        "inputs constant",
        "held-out inputs of another scale",
    ),
    "nothing was loaded": _LOSS,
    "averaged twice": (*_LOSS, "rate unfit for the weights", *_APART),
    "loss is 0": (*_LOSS, *_NOTHING, *_APART),
    "sequence of one step": (*_LOSS, "no gradient"),
    "outputs bounded before cross entropy": (*_LOSS, *_APART),
    "target among the inputs": ("overfitting",),
    "weights shrink to nothing": (*_ALL, *_APART),
    "loss term never used": (*_LOSS, *_NOTHING),
    "normalisation at the output": (*_LOSS, "targets unnormalised"),
    "mask inverted": (*_ALL, *_APART, "padding contributes"),
    "sample without a gradient": (*_LOSS, *_NOTHING),
    "mask behind the softmax": (*_ALL, *_APART, "padding contributes"),
    "scaled behind the softmax": (*_LOSS, *_WILD),
    "plateau in the wrong mode": (*_LOSS, "rate decays to nothing"),
    "step in the wrong rounds": (*_LOSS, "zero_grad is missing", "gradients never used"),
    "class weights favour the frequent": _LOSS,
    "advantage of all actions": (*_LOSS, *_APART),
    "advantage with gradients": (*_LOSS, *_WILD),
    "held-out inputs of another scale": _VALIDATED,
    "random initial state": _LOSS,
    "backward ignores its gradient": (*_ALL, *_APART),
    "backward does not fit its forward": (*_ALL, *_APART),
    "second derivatives mixed": _LOSS,
    "total of the last layer only": (*_LOSS, *_NOTHING),
    "generator and critic with one sign": (*_ALL, *_APART),
    "average pushed away": _VALIDATED,
    "average follows at once": _VALIDATED,
    "targets shifted twice": (*_LOSS, *_APART),
    "augmentation in validation": _VALIDATED,
    "validation trains as well": ("validated on training data", "overfitting"),
    "examples mixed": (*_LOSS, *_APART, "overfitting"),
    "padding index is a token": (*_LOSS, *_NOTHING, "padding contributes"),
    "initial weights out of the usual": (*_ALL, *_APART),
    "rate is 0 at first": (*_LOSS, "never updated", "rate unfit for the weights", "learning rate out of the usual"),
    "activation without a slope": (*_LOSS, *_NOTHING),
    "loss of raw outputs": (*_ALL, *_APART, "sign of the loss turned", "logarithm of what can reach 0"),
    "targets of cross entropy do not add up": (*_LOSS, "softmax for several labels", *_APART),
    "target moves with the model": (*_LOSS, *_WILD),
    "classes as numbers": (*_LOSS, *_APART),
    "always clipped": (*_LOSS, "rate unfit for the weights", "never updated"),
    "optimizer made in the loop": (*_LOSS, *_WILD),
    "arguments of the loss exchanged": (*_ALL, "loss detached", "no gradients in a step"),
    "decision in the loss": (*_ALL, "loss detached", "no gradients in a step"),
    "gradient cut in forward": (*_LOSS, *_NOTHING),
    "axes mixed by a view": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "pairs shuffled apart": (*_LOSS, *_WILD, "labels do not belong to the inputs"),
    "loss of a copy": (*_ALL, "no gradients in a step"),
    "codebook loss without the codes": (*_LOSS, *_NOTHING, *_WILD),
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
    "parameters without an optimizer": (*_LOSS, *_NOTHING, "no gradients in a step"),
    "layers nobody trains": (*_LOSS, *_NOTHING),
    "layers shared": (*_LOSS,),
    "weights all alike": (*_ALL, "labels do not belong to the inputs"),
    "nearly everything frozen": (*_LOSS, *_NOTHING, *_WILD, "labels do not belong to the inputs"),
    "sign of the loss turned": (
        *_ALL,
        "outputs opposite to the targets",
        "learning rate out of the usual",
        "logarithm of what can reach 0",
    ),
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
    "sequence read at its beginning": (*_LOSS, *_WILD, "no gradient", "labels do not belong to the inputs"),
    "output without input": (*_LOSS, "no gradient", "dead units", "vanishing gradient", "rectifier at the output"),
    "rectifier at the output": (*_LOSS, "dead units"),
    "labels do not belong to the inputs": (*_LOSS, *_WILD),
    "data not shuffled": (*_LOSS, *_WILD),
    "linear layers in a row": (*_LOSS, *_WILD),
    "evaluation mode in training": _LOSS,
    "training mode in evaluation": _VALIDATED,
    "dropout in evaluation": _VALIDATED,
    "running statistics do not arrive": _VALIDATED,
    "loss terms of unequal size": _LOSS,
    "rate unfit for the weights": (*_LOSS, *_WILD, "loss not finite"),
    "rate above the curvature": (*_LOSS, "gradients zigzag"),
    "vanishing gradient": (*_LOSS, "gradients mostly noise"),
    "dead units": (*_LOSS, "no gradient", "vanishing gradient"),
    "no gradient": _LOSS,
    "frozen layers": ("loss does not fall", "learns less than a probe", "examples not learnt", "underfitting"),
}
"""For each cause, the findings that it explains if both occur and the cause stands above them."""


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with causes first, then their consequences, each with its cause, then mere information.

    A cause is as severe as the worst finding that it explains, also one that is mere information by itself. Of equal
    findings, one that only shows in the numbers comes after those that name a place to mend.

    Example:
        >>> rows = Finding("loss does not fall", "warning", "", ""), Finding("weights all alike", "error", "", "")
        >>> [(one.rule, one.because) for one in ranked(rows)]
        [('weights all alike', ''), ('loss does not fall', 'weights all alike')]
    """
    found = list(findings)
    serious = {one.rule: one for one in reversed(found) if one.severity != "info" or one.rule in EXPLAINS}
    because = {one.rule: cause for one in found if (cause := _cause(one.rule, serious))}
    told = [replace(one, because=because.get(one.rule, "")) for one in found]

    def rank(one: Finding) -> tuple[int, int, bool]:
        follows = [SEVERITIES.index(other.severity) for other in told if other.because == one.rule]
        worst = min([SEVERITIES.index(one.severity), *follows])
        if SEVERITIES[worst] == "info":
            return 2, 0, False
        return (1, SEVERITIES.index(one.severity), False) if one.because else (0, worst, one.rule in _VAGUE)

    return tuple(sorted(told, key=rank))


def _cause(rule: str, serious: Mapping[str, Finding]) -> str:
    """Return the finding that explains another: the first in the order of the table, or the cause of that one."""
    for one, follows in EXPLAINS.items():
        if one == rule:
            return ""  # only findings above a cause explain it, so no two explain each other
        if one in serious and rule in follows:
            return _cause(one, serious) or one
    return ""
