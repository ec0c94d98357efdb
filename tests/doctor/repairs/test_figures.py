"""The figures of a run: which numbers a script prints, and how much better a change makes them."""

from __future__ import annotations

import math

import pytest

from glassgrad.doctor.repairs.edits import Edit
from glassgrad.doctor.repairs.figures import Figure, figures, gain, is_finished
from glassgrad.doctor.repairs.search import harms


@pytest.mark.parametrize(
    ("printed", "name", "value", "higher"),
    [
        ("epoch 3 | loss 0.25 | val acc 0.75", "val acc", 0.75, True),
        ("Test accuracy: 81.5%", "test accuracy", 0.815, True),
        ("step 10: train_loss=1.5e-3", "train loss", 1.5e-3, False),
        ("final rmse = 0.75 (guess 2.0)", "final rmse", 0.75, False),
        ("mean reward -4.25", "mean reward", -4.25, True),
        ("validation loss nan", "validation loss", math.nan, False),
        ("epoch 1 loss 3.0\nepoch 2 loss 2.0", "loss", 2.0, False),
    ],
)
def test_the_last_number_behind_a_name_counts(printed: str, name: str, value: float, higher: bool) -> None:
    found = figures(printed, {})[name]
    assert found.value == pytest.approx(value, nan_ok=True)
    assert found.higher == higher


@pytest.mark.parametrize(
    "printed", ["epoch 3", "lr 0.1", "accuracy of a guess 0.5", "done in 3.2 s", "chance accuracy 0.1"]
)
def test_other_numbers_do_not(printed: str) -> None:
    assert figures(printed, {}) == {}


def test_figures_of_new_examples_tell_most() -> None:
    found = figures("train loss 0.1 train accuracy 0.9 test loss 0.3 test accuracy 0.8", {})
    assert sorted(found, key=lambda name: -found[name].weight)[:2] == ["test accuracy", "test loss"]
    assert figures("", {"fit of Net in passes without gradients": 0.5})[
        "fit of Net in passes without gradients"
    ].held_out


def share(value: float) -> Figure:
    return Figure("accuracy", value, higher=True, held_out=True)


def error(value: float) -> Figure:
    return Figure("test rmse", value, higher=False, held_out=True)


def test_a_share_must_win_a_third_of_what_is_lacking() -> None:
    assert gain(share(0.4), share(0.61)) > 1 > gain(share(0.4), share(0.59))
    assert gain(share(0.95), share(0.999)) < 1
    assert gain(share(0.5), share(30.0)) == 0, "a sum instead of a mean is no accuracy"


def test_an_error_must_fall_by_two_fifths() -> None:
    assert gain(error(1.0), error(0.59)) > 1 > gain(error(1.0), error(0.61))
    assert gain(error(1.0), error(math.nan)) == gain(error(1.0), None) == gain(error(1.0), error(2.0)) == 0
    assert gain(error(math.nan), error(1.0)) == 1


def test_a_loss_that_nobody_computed_is_no_gain() -> None:
    before = figures("loss 2.0\nloss 1.5", {})["loss"]
    assert gain(before, figures("loss 0.0\nloss 0.0", {})["loss"]) == 0
    assert gain(before, figures("loss 1.9\nloss 0.000", {})["loss"]) > 1


def test_a_run_near_its_best_needs_no_change() -> None:
    assert is_finished(figures("loss 0.01 accuracy 0.99", {}))
    assert not is_finished(figures("train accuracy 0.99 test accuracy 0.5", {}))
    assert not is_finished(figures("loss 0.01", {}))


def test_terms_of_a_bound_count_together() -> None:
    """One of them falls where the other rises: without noise the error falls, without a code the divergence."""
    found = figures("reconstruction 24.0 kl 6.0\nreconstruction 12.5, KL 5.5", {})
    assert set(found) == {"reconstruction and kl"}
    one = found["reconstruction and kl"]
    assert (one.value, one.first, one.higher) == (18.0, 30.0, False)
    assert set(figures("loss 18.0 recon 12.5 kl 5.5", {})) == {"loss"}
    assert set(figures("kl 5.5 accuracy 0.5", {})) == {"kl", "accuracy"}
    assert figures("reconstruction psnr 21.0", {})["reconstruction psnr"].higher


def test_what_helps_one_player_against_the_other_is_no_repair() -> None:
    """A player that stands still is beaten at once: the loss of its opponent falls, and its own rises."""
    before = figures("hunter loss 3.05 hare loss 0.05", {})
    usual = {name: (one, one) for name, one in before.items()}
    edit, of_loss = Edit(1, "pass", "pass", ""), Edit(1, "", "", "", rescales=True)
    beaten, both = (
        figures(text, {}) for text in ("hunter loss 0.03 hare loss 0.97", "hunter loss 0.03 hare loss 0.06")
    )
    assert gain(before["hunter loss"], beaten["hunter loss"]) > 1
    assert harms(edit, beaten, usual)
    assert not harms(edit, both, usual)
    assert not harms(of_loss, beaten, usual), "another scale of the losses says nothing"
    assert harms(edit, figures("hunter loss 0.03 hare loss nan", {}), usual)
