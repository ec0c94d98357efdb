"""The estimators under scikit-learn's own checks, and in its tools."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from glassgrad import errors, nn

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra: sklearn)")

from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from glassgrad.sklearn import Classifier, Regressor

X, Y = make_moons(120, noise=0.1, random_state=0)
QUICK = {
    "check_parameters_default_constructible", "check_no_attributes_set_in_init", "check_estimators_nan_inf",
    "check_estimators_pickle", "check_dict_unchanged", "check_n_features_in", "check_classifiers_classes",
    "check_supervised_y_2d", "check_regressor_multioutput", "check_dont_overwrite_attributes",
    "check_estimators_unfitted", "check_do_not_raise_errors_in_init_or_set_param",
    "check_sample_weights_list", "check_sample_weights_shape", "check_sample_weights_not_overwritten",
}  # fmt: skip  # a table


@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_quick_checks_of_scikit_learn(kind):
    done = set()
    for estimator, check in estimator_checks_generator(kind(hidden=(8,), epochs=3, batch_size=200)):
        name = check.func.__name__
        if name in QUICK:
            check(estimator)
            done.add(name)
    assert len(done) >= 11


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Classifier, Regressor])
@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_scikit_learn(kind):
    results = check_estimator(kind(), on_skip=None)
    assert len(results) > 40
    assert not [one["check_name"] for one in results if one["status"] not in {"passed", "skipped"}]
    assert "check_sample_weight_equivalence_on_dense_data" in {
        one["check_name"] for one in results if one["status"] == "passed"
    }


def test_a_classifier_learns_and_is_repeated_by_its_seed():
    model = Classifier(hidden=(16,), rate=0.02, epochs=60, random_state=0).fit(X, np.array(["low", "high"])[Y])
    assert model.classes_.tolist() == ["high", "low"]
    assert model.score(X, np.array(["low", "high"])[Y]) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    again = clone(model).fit(X, np.array(["low", "high"])[Y])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert (clone(model).set_params(random_state=1).fit(X, Y).predict_proba(X) != model.predict_proba(X)).any()
    back = pickle.loads(pickle.dumps(model))  # noqa: S301 - written on this line
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    back.partial_fit(X, back.predict(X))


def test_searches_pipelines_and_cross_validation():
    pipe = make_pipeline(StandardScaler(), Classifier(epochs=5, rate=0.02, random_state=0))
    search = GridSearchCV(pipe, {"classifier__hidden": [(8,), (8, 8)]}, cv=2).fit(X, Y)
    assert search.best_params_["classifier__hidden"] in {(8,), (8, 8)}
    assert cross_val_score(search.best_estimator_, X, Y, cv=2).mean() > 0.5


def test_partial_fit():
    model = Classifier(hidden=(16,), rate=0.02, random_state=0)
    for _ in range(40):
        model.partial_fit(X, Y, classes=[0, 1])
    assert model.score(X, Y) > 0.85
    assert model.n_iter_ == 40
    with pytest.raises(errors.ArgumentError, match=r"labels .7., which are not among the classes"):
        model.partial_fit(X[:3], [7, 0, 1])


def test_early_stopping_keeps_the_best_weights():
    model = Classifier(hidden=(16,), rate=0.05, epochs=200, early_stopping=True, patience=4, random_state=0).fit(X, Y)
    assert model.n_iter_ < 200
    assert len(model.validation_scores_) == model.n_iter_
    assert model.validation_scores_[-1] <= max(model.validation_scores_)


@pytest.mark.parametrize("compile", [False, True])
def test_modules_of_your_own_and_several_targets(compile):
    class Own(nn.Module):
        def __init__(self, features, outputs):
            super().__init__()
            self.inner, self.outer = nn.Linear(features, 16), nn.Linear(16, outputs)

        def forward(self, x):
            return self.outer(self.inner(x).tanh())

    targets = np.stack([X[:, 0] ** 2, X[:, 0] * X[:, 1]], axis=1)
    options = {"rate": 0.02, "epochs": 60, "random_state": 0, "compile": compile, "batch_size": 40}
    made = Regressor(module=Own, **options).fit(X.astype(np.float32), targets)
    assert made.predict(X).shape == (120, 2)
    assert made.score(X, targets) > 0.8
    given = Own(2, 2)
    before = given.inner.weight.detach().numpy().copy()
    Regressor(module=given, **{**options, "epochs": 1, "compile": False}).fit(X, targets)
    np.testing.assert_array_equal(given.inner.weight.detach().numpy(), before)


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_weights_are_repetitions(kind, compile):
    """In one batch, integer weights train the network that repeated examples train, and 0 is an example not there."""
    draw = np.random.RandomState(0)
    times = draw.randint(0, 4, len(X))
    options = {"hidden": (8,), "epochs": 8, "rate": 0.05, "batch_size": 10**6, "random_state": 0, "compile": compile}
    weighted = kind(**options).fit(X, Y, sample_weight=times)
    repeated = kind(**options).fit(X.repeat(times, axis=0), Y.repeat(times))
    look = "predict_proba" if kind is Classifier else "predict"
    np.testing.assert_allclose(getattr(weighted, look)(X), getattr(repeated, look)(X), rtol=1e-9)
    np.testing.assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=1e-9)
    assert not np.allclose(getattr(weighted, look)(X), getattr(kind(**options).fit(X, Y), look)(X), rtol=1e-3)
    score = weighted.score(X, Y, sample_weight=times)
    assert score == pytest.approx(weighted.score(X.repeat(times, axis=0), Y.repeat(times)))


def test_weights_in_partial_fit_batches_and_early_stopping():
    only_ones = np.where(Y == 1, 1.0, 1e-6)
    model = Classifier(hidden=(8,), rate=0.05, random_state=0)
    for _ in range(10):
        model.partial_fit(X, Y, classes=[0, 1], sample_weight=only_ones)
    assert (model.predict(X) == 1).all()
    stopped = Classifier(hidden=(8,), rate=0.05, epochs=30, early_stopping=True, random_state=0)
    assert (stopped.fit(X, Y, sample_weight=only_ones).predict(X) == 1).all()
    assert max(stopped.validation_scores_) == pytest.approx(1, abs=1e-4)
    assert Classifier(epochs=2).fit(X, Y, sample_weight=Y).classes_.tolist() == [1]
    for weights, words in ((-only_ones, "negative ones, such as -1"), (only_ones[:3], "shape|length")):
        with pytest.raises(ValueError, match=words):
            Regressor().fit(X, Y, sample_weight=weights)


def test_wrong_options():
    for options, words in (
        ({"hidden": (0,)}, "hidden"), ({"activation": "step"}, "one of relu"), ({"epochs": 0}, "epochs"),
        ({"module": nn.Linear(2, 5)}, r"outputs of shape \(examples, 2\)"), ({"optimizer": "magic"}, "magic"),
    ):  # fmt: skip  # a table
        with pytest.raises((errors.ArgumentError, errors.ShapeError), match=words):
            Classifier(**options).fit(X, Y)


def test_scikit_learn_is_imported_by_this_module_alone():
    code = (
        "import sys, glassgrad as gg; gg.nn, gg.optim, gg.zeros(2); assert not {'sklearn', 'onnx'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
