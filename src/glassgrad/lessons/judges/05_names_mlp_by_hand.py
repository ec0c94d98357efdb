"""Judge the 26 gradients of the names MLP."""

from __future__ import annotations

from typing import Any

import numpy as np

from glassgrad.lessons.derivations import add_derivation
from glassgrad.lessons.exercise import Answer, Names, Steps, Verdict
from glassgrad.lessons.hints import judged
from glassgrad.verify import edits
from glassgrad.verify.truth import find_truth

STEPS = Steps()

_BROADCAST = "was one number for each feature, or each row, and was broadcast: its gradient is a sum over that axis."
_GRADIENTS = (
    "logprobs probs share total counts shifted top logits h W2 b2 act gain shift hat inv var diff2 diff mean pre flat "
    "W1 b1 emb C"
)
add_derivation(
    STEPS,
    "backward",
    _GRADIENTS.split(),
    section="Backwards",
    hints={
        ("logprobs", edits.SCALE): "The loss is a mean over the n examples: each one counts 1/n.",
        ("logprobs", edits.SIGN): "There is a minus in front of the mean.",
        ("probs", edits.FACTOR): "The slope of log(p) is 1/p.",
        ("share", edits.SUM): f"share {_BROADCAST}",
        ("total", edits.FACTOR): "The slope of total**-1 is -total**-2, which is -share**2.",
        ("total", edits.SIGN): "Look at the signs, of the slope of 1/total and of the exponent: the larger "
        "the total, the smaller the share.",
        ("counts", edits.ACCUMULATION): "counts is used twice, in total and in probs. Both send a gradient.",
        "shifted": "The slope of exp is exp itself, and that was computed already: counts.",
        ("top", edits.SUM): f"top {_BROADCAST}",
        ("logits", edits.ACCUMULATION): "logits is used twice, in shifted and in the maximum. Both send a gradient.",
        ("act", edits.FACTOR): "The slope of tanh is 1 - tanh**2, and h is the tanh.",
        ("act", edits.VARIABLE): "The slope of tanh is 1 - tanh**2, and h is the tanh, not act.",
        ("inv", edits.SUM): f"inv {_BROADCAST}",
        ("var", edits.CONSTANT): "Differentiate v**-0.5: the exponent comes down as a factor, and then falls by one.",
        ("diff2", edits.N_MINUS_1): "The variance divides by n - 1.",
        ("diff", edits.ACCUMULATION): "diff is used twice, in its square and in hat. Both send a gradient.",
        ("mean", edits.SUM): f"mean {_BROADCAST}",
        ("pre", edits.ACCUMULATION): "pre is used twice, in diff and in the mean. Both send a gradient.",
        ("pre", edits.SCALE): "The mean divides by n.",
        (
            "C",
            edits.ASSIGNMENT,
        ): "A letter that occurs several times collects all of its gradients: np.add.at adds them.",
        ("C", edits.ACCUMULATION): "A letter that occurs several times collects all of its gradients: np.add.at adds "
        "them, while an index in an assignment writes the last one only.",
    },
)


def _true(given: Names, name: str) -> tuple[Any, dict[str, Any]]:
    truth = find_truth(given["forward"], given["inputs"])
    return truth.gradients[name][0].total, truth.values


@STEPS("dlogits in one go", section="The first simplification")
def _dlogits(dlogits_at_once: Answer, given: Names) -> Verdict:
    expected, values = _true(given, "logits")
    probs, targets = values["probs"], values["targets"]
    n = len(targets)
    found = dlogits_at_once(probs.copy(), targets.copy())
    hits = np.eye(27)[targets]
    return judged(
        found,
        expected,
        (expected * n, "The loss is a mean over the n examples: a factor 1/n is missing."),
        (-expected, "The sign: a probability that is too large has to fall, so its gradient is positive."),
        (probs / n, "Subtract the truth as well: 1 at the right letter."),
        ((probs - 1) / n, "1 is subtracted everywhere; the truth is 1 at the right letter, and 0 elsewhere."),
        (probs - hits / n, "Both the probability and the truth are divided by n."),
        (hits * (probs - 1) / n, "The other letters have a gradient too: their probability, over n."),
        what="dlogits_at_once(probs, targets)",
    )


@STEPS("dpre in one go", section="The second simplification")
def _dpre(dpre_at_once: Answer, given: Names) -> Verdict:
    expected, values = _true(given, "pre")
    dact, _ = _true(given, "act")
    gain, inv, hat = values["gain"], values["inv"], values["hat"]
    n = len(hat)
    found = dpre_at_once(dact.copy(), gain.copy(), inv.copy(), hat.copy())
    along = (dact * hat).sum(0)
    wrong = gain * inv
    return judged(
        found,
        expected,
        (
            wrong * (dact - dact.mean(0) - hat * along / n),
            "The variance divides by n - 1: so does one of the two means.",
        ),
        (wrong * dact, "Mean and variance were made from the same numbers: two terms are missing."),
        (
            wrong * (dact - dact.mean(0)),
            "That is the share of the mean. The variance has one too: what points along hat.",
        ),
        (wrong * (dact - hat * along / (n - 1)), "That is the share of the variance. The mean has one too."),
        (inv * (dact - dact.mean(0) - hat * along / (n - 1)), "act = gain * hat + shift: where is the gain?"),
        (gain * (dact - dact.mean(0) - hat * along / (n - 1)), "hat = diff * inv: where is inv?"),
        what="dpre_at_once(dact, gain, inv, hat)",
    )
