"""Judge the chain rule: nudging, a derivation on numbers, and a machine that records every step."""

from __future__ import annotations

from glassgrad.lessons.derivations import add_derivation
from glassgrad.lessons.exercise import Answer, Names, Steps, Verdict
from glassgrad.lessons.hints import judged
from glassgrad.verify import edits

STEPS = Steps()


@STEPS("slope by nudging", section="Nudging")
def _nudging(slope_by_nudging: Answer) -> Verdict:
    def f(x: float) -> float:
        return x**3

    up, down, here = f(2.1), f(1.9), f(2.0)
    return judged(
        slope_by_nudging(f, 2.0, 0.1),
        (up - down) / 0.2,
        ((up - here) / 0.1, "That nudges to one side only. Go as far to the other side, and the errors cancel."),
        ((here - down) / 0.1, "That nudges to one side only. Go as far to the other side, and the errors cancel."),
        ((up - down) / 0.1, "From one side to the other it is two nudges."),
        (up - down, "That is how far f moves. How far per unit of x?"),
        ((down - up) / 0.2, "The sign: x**3 rises, so its slope is positive."),
        what="slope_by_nudging(lambda x: x**3, 2.0, 0.1)",
    )


add_derivation(
    STEPS,
    "backward",
    ("miss", "prediction", "scaled", "x", "w", "b"),
    section="The chain",
    hints={
        "miss": "In miss * miss a nudge counts twice, once per factor.",
        "scaled": "In a sum a nudge passes unchanged: its slope is 1.",
        ("w", edits.ACCUMULATION): "w is used twice, in scaled and in the penalty. Over paths, slopes add.",
        ("w", edits.VARIABLE): "In x * w a nudge of w is magnified by x.",
        ("x", edits.VARIABLE): "In x * w a nudge of x is magnified by w.",
        "b": "In a sum a nudge passes unchanged: its slope is 1.",
    },
)


@STEPS("slopes of a book", section="A machine for it")
def _book(slopes_of: Answer, given: Names) -> Verdict:
    found = slopes_of([(name, list(makers)) for name, makers in given["book"]])
    if found is None:
        return "slopes_of(book) is None: is a `return` missing?"
    if not isinstance(found, dict):
        return f"slopes_of(book) is a {type(found).__name__}, expected a dictionary: name -> slope."
    missing = [name for name in "abcd" if name not in found]
    if missing:
        return f"slopes_of(book) says nothing of {', '.join(missing)}; every name has a slope."
    return judged(
        [found[name] for name in "abcd"],
        [36.0, 4.0, 6.0, 1.0],
        ([24.0, 4.0, 6.0, 1.0], "a is used in b and in c: over paths, slopes add."),
        ([12.0, 4.0, 6.0, 1.0], "a occurs more than once: slopes add over paths; none replaces another."),
        ([0.0, 4.0, 6.0, 1.0], "A number can send its slope on when it has received all of it: begin with the last."),
        ([7.0, 4.0, 6.0, 1.0], "What is sent is the slope of the link times the slope of the number that sends it."),
        ([0.0, 0.0, 0.0, 0.0], "Somebody has to begin: the slope of the loss for itself is 1."),
        what="the slopes of a, b, c, d",
    )
