"""Hand-written derivations: correct ones pass; for wrong ones, the first wrong line and its mistake are named."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.verify import check_my_backward, edits
from tests.verify.broken_derivations import BROKEN, FAMILIES, broken_source


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_right_derivations_pass(family):
    report = check_my_backward(family.derivation, family.forward, family.inputs, show=False)
    assert report, str(report)
    assert report.diagnosis is None
    assert len(report.lines) == len([line for line in family.derivation.splitlines() if line])


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{case.family}: {case.wrong or 'no ' + case.right}")
def test_the_first_wrong_line_is_named(case):
    family = FAMILIES[case.family]
    source, line = broken_source(case)
    report = check_my_backward(source, family.forward, family.inputs, show=False)
    assert not report
    assert report.wrong_line == line
    assert report.wrong_source == source.splitlines()[line - 1]
    assert report.diagnosis.kind == case.kind, str(report)


def test_there_are_enough_of_them_and_of_every_kind():
    assert len(BROKEN) >= 30
    kinds = Counter(case.kind for case in BROKEN)
    for kind in (
        edits.SUM,
        edits.TRANSPOSE,
        edits.ACCUMULATION,
        edits.SCALE,
        edits.N_MINUS_1,
        edits.SIGN,
        edits.UPDATE,
    ):
        assert kinds[kind], kind
    assert {case.family.split(",")[0] for case in BROKEN} >= {
        "names MLP",
        "softmax",
        "batch norm",
        "layer norm",
        "attention",
    }


# Mistakes made by machine, at every place where they are possible; the diagnosis was not made for them.
MUTATIONS = [
    (r"= -", "= ", edits.SIGN),
    (r" - ", " + ", edits.SIGN),
    (r"\.sum\([^)]*\)+?", "", edits.SUM),
    (r"\.T", "", edits.TRANSPOSE),
    (r"\.swapaxes\(-1, -2\)", "", edits.TRANSPOSE),
    (r" / [nd]$", "", edits.SCALE),
    (r"\(n - 1\)", "n", edits.N_MINUS_1),
    (r"\+=", "=", edits.ACCUMULATION),
    (r"sum\(0", "sum(1", edits.WRONG_SUM),
    (r"\.sum\(", ".mean(", edits.EXTRA_SCALE),
    (r"^(\w+) = ", r"\1 += ", edits.UPDATE),
]


def mutants(family):
    lines = family.derivation.splitlines()
    for number, line in enumerate(lines):
        for pattern, replacement, kind in MUTATIONS:
            for match in re.finditer(pattern, line):
                changed = line[: match.start()] + match.expand(replacement) + line[match.end() :]
                try:
                    compile(changed, "line", "exec")
                except SyntaxError:  # a change that is no program is no mistake to find
                    continue
                yield "\n".join([*lines[:number], changed, *lines[number + 1 :]]), number + 1, kind


@pytest.mark.slow
def test_mistakes_made_by_machine():
    total = lines = kinds = 0
    for family in FAMILIES.values():
        for source, line, kind in mutants(family):
            report = check_my_backward(source, family.forward, family.inputs, show=False)
            if not report:  # some changes make no difference, such as the sign of a gradient that is 0
                total += 1
                lines += report.wrong_line == line
                kinds += report.diagnosis.kind == kind
    assert total > 150
    assert lines == total
    assert kinds >= 0.97 * total


# --- how a derivation may be written ------------------------------------------------------------


def forward(x, w, b):
    h = (x @ w + b).tanh()
    return (h * h * h).sum()


RNG = np.random.default_rng(0)
INPUTS = {"x": RNG.normal(size=(4, 3)), "w": RNG.normal(size=(3, 2)), "b": RNG.normal(size=2)}


def test_a_function_is_read_with_the_lines_of_its_file():
    def right(h, x, w):
        """What is returned and what this says do not matter."""
        dh = 3 * h**2
        dz = dh * (1 - h * h)  # a helper: z has no name in forward
        dx = dz @ w.T
        dw = x.T @ dz
        db = dz.sum(0)
        return dx, dw, db

    def wrong(h, x, w):
        dh = 3 * h**2
        dz = dh * (1 - h * h)
        dx = dz @ w.T
        dw = x.T @ dz
        db = dz
        return dx, dw, db

    assert check_my_backward(right, forward, INPUTS, show=False)
    report = check_my_backward(wrong, forward, INPUTS, show=False)
    assert report.wrong_line == wrong.__code__.co_firstlineno + 5
    assert report.wrong_source == "db = dz"


def test_a_wrong_helper_is_found_through_the_lines_that_use_it():
    source = "dh = 3 * h**2\ndz = dh * (1 + h * h)\ndw = x.T @ dz\ndb = dz.sum(0)\n"
    report = check_my_backward(source, forward, INPUTS, show=False)
    assert (report.wrong_line, report.wrong_source, report.diagnosis.kind) == (2, "dz = dh * (1 + h * h)", edits.SIGN)


def test_pytorchs_spelling_works_too():
    def torch_like(logits, onehot):
        n = logits.shape[0]
        counts = logits.exp()
        total = counts.sum(1, keepdim=True)
        logprobs = counts.log() - total.log()
        return -(logprobs * onehot).sum() / n

    inputs = {"logits": gg.randn(4, 5), "onehot": np.eye(5)[[0, 3, 4, 1]]}
    source = """
    dlogprobs = -onehot / n * gg.ones_like(logprobs)
    dtotal = -(dlogprobs / total).sum(1, keepdim=True)
    dcounts = dlogprobs / counts + dtotal
    dlogits = dcounts * logits.exp()
    """
    assert check_my_backward(source, torch_like, inputs, show=False)
    report = check_my_backward(
        source.replace("-(dlogprobs / total)", "(dlogprobs / total)"), torch_like, inputs, show=False
    )
    assert (report.wrong_line, report.diagnosis.kind) == (3, edits.SIGN)


def test_inputs_in_order_and_d_underscore_names():
    source = "d_h = 3 * h**2\nd_b = (d_h * (1 - h * h)).sum(0)\n"
    report = check_my_backward(source, forward, list(INPUTS.values()), show=False)
    assert report
    assert report.missing == ["x", "w"]


def test_loops_and_conditions_are_one_step():
    source = """
dh = np.zeros_like(h)
for i in range(len(h)):
    dh[i] = 3 * h[i] ** 2
if True:
    db = (dh * (1 - h * h)).sum(0)
"""
    assert check_my_backward(source, forward, INPUTS, show=False)
    report = check_my_backward(source.replace("3 * h[i]", "h[i]"), forward, INPUTS, show=False)
    assert report.wrong_line == 3
    assert report.diagnosis.kind == edits.CONSTANT


def test_a_gradient_used_before_it_is_complete():
    def twice(a, b):
        c = a * b
        d = c + a
        return (d * d).sum()

    inputs = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, -1.0])}
    good = "dd = 2 * d\ndc = dd\nda = dc * b\nda += dd\ndb = dc * a\n"
    assert check_my_backward(good, twice, inputs, show=False)
    report = check_my_backward(good.replace("da += dd\n", ""), twice, inputs, show=False)
    assert (report.wrong_line, report.diagnosis.kind) == (3, edits.ACCUMULATION)
    assert "d = c + a" in report.diagnosis.words


def test_a_variable_that_forward_assigns_twice_may_be_either():
    def rebound(x):
        x = x * 3
        x = x.exp()
        return x.sum()

    inputs = {"x": np.array([0.1, 0.2])}
    assert check_my_backward("dx = np.ones_like(x)", rebound, inputs, show=False)
    assert check_my_backward("dx = 3 * x", rebound, inputs, show=False)
    assert not check_my_backward("dx = x", rebound, inputs, show=False)


def test_the_report_reads_well(capsys):
    source = "dh = 3 * h**2\ndb = dh * (1 - h * h)\n"
    report = check_my_backward(source, forward, INPUTS)
    printed = capsys.readouterr().out
    assert printed.strip() == str(report).strip()
    lines = printed.splitlines()
    assert lines[0].startswith("line   1 | dh ")
    assert lines[1].endswith("shapes: (4, 2) and (2,)  <- wrong")
    assert "The first wrong line is line 2:" in lines
    assert any("db: a missing sum over a broadcast axis." in line for line in lines)
    assert lines[-1] == "Not derived: dx, dw."


def test_a_line_that_fails_is_the_wrong_line():
    report = check_my_backward("dh = 3 * h**2\ndw = x.T @ undefined\n", forward, INPUTS, show=False)
    assert report.wrong_line == 2
    assert "undefined" in report.diagnosis.words
    report = check_my_backward("print(undefined)\ndh = 3 * h**2\n", forward, INPUTS, show=False)
    assert report.wrong_line == 1


def test_the_users_arrays_are_left_alone():
    inputs = {name: value.copy() for name, value in INPUTS.items()}
    check_my_backward("dh = 3 * h**2\nx[:] = 0\nw *= 2\n", forward, inputs, show=False)
    assert all(np.array_equal(inputs[name], INPUTS[name]) for name in INPUTS)


def test_an_unknown_mistake_says_where_the_numbers_differ():
    source = "dh = np.sin(h) + np.arange(8).reshape(4, 2)\n"
    report = check_my_backward(source, forward, INPUTS, show=False)
    assert report.diagnosis.kind == "unknown"
    assert re.search(r"8 of 8 entries differ; the worst is dh\[\d, \d\] = ", report.diagnosis.words)


def test_messages():
    with pytest.raises(errors.KindError, match="of type int"):
        check_my_backward("dx = 1", 3, {})
    with pytest.raises(errors.ArgumentError, match=r"returned shape \(4, 2\)"):
        check_my_backward("dx = 1", lambda x: x * 2, {"x": np.ones((4, 2))})
    with pytest.raises(errors.ArgumentError, match="Expected: one of dx, dw, db"):
        check_my_backward("y = 1", forward, INPUTS)


STROKES = """
dlogits = probs.copy()
dlogits[np.arange(n), y] -= 1
dlogits /= n
dw = x.T @ dlogits
"""


def cross_entropy(x, w, y):
    n = x.shape[0]
    logits = x @ w
    probs = logits.softmax(-1)
    return -probs.log()[np.arange(n), y].sum() / n


STROKES_INPUTS = {"x": RNG.normal(size=(5, 4)), "w": RNG.normal(size=(4, 3)), "y": np.array([0, 2, 1, 1, 0])}


def test_a_gradient_may_be_made_in_several_strokes():
    report = check_my_backward(STROKES, cross_entropy, STROKES_INPUTS, show=False)
    assert report
    assert [line.complete for line in report.lines] == [False, False, True, True]
    assert "All 2 gradients are right." in str(report)


@pytest.mark.parametrize(
    ("right", "wrong", "line", "kind"),
    [
        ("-= 1", "+= 1", 3, edits.SIGN),
        ("dlogits /= n\n", "", 3, edits.SCALE),
        ("dlogits /= n", "dlogits *= n", 4, edits.SCALE),
        ("probs.copy()", "-probs", 2, edits.SIGN),
        ("x.T @ dlogits", "dlogits.T @ x", 5, edits.TRANSPOSE),
    ],
)
def test_mistakes_in_one_of_the_strokes(right, wrong, line, kind):
    report = check_my_backward(STROKES.replace(right, wrong), cross_entropy, STROKES_INPUTS, show=False)
    assert (report.wrong_line, report.diagnosis.kind) == (line, kind), str(report)
