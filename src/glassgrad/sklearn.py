"""Estimators for scikit-learn: a classifier and a regressor around a module, or around hidden layers of given sizes.

They can be cloned, pickled, searched over and put into pipelines like scikit-learn's own. Importing this file imports
scikit-learn (``pip install 'glassgrad[sklearn]'``).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from glassgrad import errors, nn
from glassgrad.compile.api import compile as compiled
from glassgrad.engine.mode import no_grad
from glassgrad.engine.random import fork_rng, manual_seed
from glassgrad.engine.tensors.creation import from_numpy
from glassgrad.errors.packages import needed
from glassgrad.nn import functional as F
from glassgrad.ops.core import bad_option
from glassgrad.optim.by_name import get_optimizer

with needed("sklearn", "glassgrad.sklearn", extra="sklearn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

Array = Any  # np.ndarray
_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "silu": nn.SiLU}


class _Network(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of both estimators: the module and its training."""

    def __init__(
        self,
        hidden: Any = (64, 64),
        module: Any = None,
        *,
        activation: str = "relu",
        optimizer: str = "adam",
        rate: float = 1e-3,
        weight_decay: float = 0.0,
        batch_size: int = 32,
        epochs: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 10,
        tol: float = 1e-4,
        compile: bool = False,
        random_state: Any = None,
    ) -> None:
        # scikit-learn requires unchanged arguments here; `fit` checks them.
        self.hidden = hidden
        self.module = module
        self.activation = activation
        self.optimizer = optimizer
        self.rate = rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.tol = tol
        self.compile = compile
        self.random_state = random_state

    # --- the module ---------------------------------------------------------------------------------

    def _start(self, inputs: Array, outputs: int) -> None:
        """Make the module and the optimizer."""
        self._check_options()
        self.module_ = self._built(inputs.shape[1], outputs).to(inputs.dtype).train()
        with no_grad():
            found = self.module_.eval()(from_numpy(inputs[:1]))
        if tuple(found.shape) != (1, outputs):
            expected = f"outputs of shape (examples, {outputs})"
            raise errors.ESTIMATOR_MODULE(given=f"(1 example) {tuple(found.shape)}", expected=expected)
        decay = {"weight_decay": self.weight_decay} if self.weight_decay else {}
        self._optimizer = get_optimizer(self.optimizer, self.module_.parameters(), self.rate, **decay)
        self.loss_curve_: list[float] = []
        self.validation_scores_: list[float] = []

    def _built(self, features: int, outputs: int) -> Any:
        if isinstance(self.module, nn.Module):
            return copy.deepcopy(self.module)
        if self.module is not None:
            return self.module(features, outputs)
        sizes = [features, *(self.hidden if isinstance(self.hidden, tuple | list) else [self.hidden])]
        layers: list[Any] = []
        for before, after in itertools.pairwise(sizes):
            layers += [nn.Linear(before, after), _ACTIVATIONS[self.activation]()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))

    def _check_options(self) -> None:
        sizes = self.hidden if isinstance(self.hidden, tuple | list) else [self.hidden]
        layers = all(isinstance(size, int | np.integer) and size > 0 for size in sizes)
        share = self.validation_fraction
        for name, given, fits, expected in (
            ("hidden", self.hidden, layers, "sizes of layers"),
            ("activation", self.activation, self.activation in _ACTIVATIONS, f"one of {', '.join(_ACTIVATIONS)}"),
            ("epochs", self.epochs, self.epochs >= 1, "a number of epochs"),
            ("batch_size", self.batch_size, self.batch_size >= 1, "a number of examples"),
            ("validation_fraction", share, 0 < share < 1, "a share between 0 and 1"),
        ):
            if not fits:
                raise bad_option(type(self).__name__, name, given, expected)

    # --- training -----------------------------------------------------------------------------------

    def _weighed(self, X: Array, y: Array, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        """Return the examples and their weights, omitting examples of weight 0."""
        if sample_weight is None:
            return X, y, None
        weights = _check_sample_weight(sample_weight, X, dtype=X.dtype)
        if (weights < 0).any() or not weights.any():
            what = f"negative ones, such as {weights.min()}" if weights.any() else "only zeros"
            raise errors.ESTIMATOR_WEIGHTS(given=what)
        counts = weights > 0
        return (X, y, weights) if counts.all() else (X[counts], y[counts], weights[counts])

    def _train(
        self, inputs: Array, targets: Array, weights: Array | None, outputs: int, epochs: int, *, further: bool = False
    ) -> None:
        """Train for some epochs, from the start unless it is `further` training."""
        draw = check_random_state(self.random_state)
        with fork_rng():
            if not further:
                manual_seed(int(draw.randint(2**31 - 1)))
                self._start(inputs, outputs)
                self._shuffle = np.random.RandomState(draw.randint(2**31 - 1))
            data, held_out = [inputs, targets, *([] if weights is None else [weights])], None
            if self.early_stopping and not further:
                data, held_out = self._split(data)
            self._run(data, epochs, held_out)
        self.n_iter_ = len(self.loss_curve_)

    def _split(self, data: list[Array]) -> tuple[list[Array], list[Array]]:
        """Set examples aside, with the same share of each class if possible."""
        labels = data[1] if isinstance(self, ClassifierMixin) else None
        if labels is not None and (np.bincount(labels)[np.unique(labels)] < 2).any():
            labels = None
        parts = train_test_split(*data, test_size=self.validation_fraction, random_state=self._shuffle, stratify=labels)
        return parts[::2], parts[1::2]

    def _run(self, data: list[Array], epochs: int, held_out: list[Array] | None) -> None:
        """Train on inputs, targets and, if given, weights."""
        step = compiled(self._step) if self.compile else self._step
        importance = data[2] if len(data) == 3 else np.ones(len(data[0]))
        best, weights, waited = -np.inf, None, 0
        for _ in range(epochs):
            self.module_.train()
            total = 0.0
            for rows in self._batches(len(importance)):
                total += float(step(*(from_numpy(part[rows]) for part in data))) * importance[rows].sum()
            self.loss_curve_.append(float(total / importance.sum()))
            score = -self.loss_curve_[-1]
            if held_out is not None:
                score = self._score(*held_out)
                self.validation_scores_.append(score)
            if score > best + self.tol:
                best, waited = score, 0
                if held_out is not None:
                    weights = {name: tensor.numpy().copy() for name, tensor in self.module_.state_dict().items()}
            else:
                waited += 1
            if waited >= self.patience:
                break
        if weights is not None:
            self.module_.load_state_dict(weights)
        self.module_.eval()

    def _batches(self, count: int) -> Iterator[Array]:
        order = self._shuffle.permutation(count)
        for begin in range(0, count, self.batch_size):
            yield order[begin : begin + self.batch_size]

    def _step(self, inputs: Any, targets: Any, weights: Any = None) -> Any:
        self._optimizer.zero_grad()
        loss = self._losses(self.module_(inputs), targets)  # one loss per example
        loss = loss.mean() if weights is None else (loss * weights).sum() / weights.sum()
        loss.backward()
        self._optimizer.step()
        return loss

    def _losses(self, found: Any, targets: Any) -> Any:
        raise NotImplementedError  # the classifier and the regressor differ

    def _score(self, inputs: Array, targets: Array, weights: Array | None = None) -> float:
        raise NotImplementedError  # the classifier and the regressor differ

    # --- use ----------------------------------------------------------------------------------------

    def _outputs(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._forward(X)

    def _forward(self, inputs: Array) -> Array:
        kind = next(self.module_.parameters()).dtype
        with no_grad():
            return self.module_.eval()(from_numpy(np.ascontiguousarray(inputs, kind))).numpy()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "module_")


class Classifier(ClassifierMixin, _Network):  # type: ignore[misc]  # scikit-learn has no types
    """A neural network that classifies, as an estimator of scikit-learn.

    Args:
        hidden: sizes of the hidden layers.
        module: a module to train instead of such layers (a copy is trained), or a function that makes one,
            ``module(features, classes)``. It returns a logit for each class.
        activation: between the layers: "relu", "tanh", "sigmoid", "gelu" or "silu".
        optimizer: its name; see `optim.get_optimizer`.
        rate, weight_decay: options of the optimizer.
        batch_size: examples per step.
        epochs: the largest number of passes over the examples.
        early_stopping: set `validation_fraction` of the examples aside, and keep the weights with the best score on
            them.
        validation_fraction: the share set aside.
        patience: stop after this many epochs without an improvement of the score by more than `tol` (without early
            stopping, of the loss).
        tol: see `patience`.
        compile: compile the training steps; pays for larger networks and long trainings.
        random_state: seed of the weights, the order of the examples and the validation split.

    Attributes:
        module_: the trained module.
        classes_: the labels.
        loss_curve_, validation_scores_: one number for each epoch.
        n_iter_: epochs done.

    Example:
        >>> import numpy as np
        >>> from glassgrad.sklearn import Classifier
        >>> X = np.array([[0.0], [0.2], [0.8], [1.0]])
        >>> model = Classifier(hidden=(8,), rate=0.05, random_state=0).fit(X, list("aabb"))
        >>> model.predict([[0.1], [0.9]]).tolist()
        ['a', 'b']
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network on examples.

        Args:
            X: the examples, (examples, features), float64 or float32; other numbers become float64.
            y: their labels, (examples,).
            sample_weight: weight of each example, (examples,), none negative. The loss of a batch is Σ w_i l_i / Σ w_i:
                a weight of 2 counts an example twice, 0 leaves it out. Batches are counted in examples. None gives all
                the same weight.

        Returns:
            The estimator itself.

        Raises:
            ArgumentError: an option is invalid, or a weight is negative.
            ShapeError: the module does not return one output for each class.
            ValueError: scikit-learn refuses X, y or the weights (NaN, differing lengths, ...).
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        X, y, weights = self._weighed(X, y, sample_weight)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self._train(X, numbers.astype(np.int64), weights, len(self.classes_), self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Make one pass over some examples.

        Args:
            X, y, sample_weight: see `fit`.
            classes: all labels of this and later calls; the first call must give them.

        Returns:
            The estimator itself.

        Raises:
            ArgumentError: a label is not among `classes`.
            ShapeError, ValueError: see `fit`.
        """
        begun = hasattr(self, "module_")
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], reset=not begun)
        check_classification_targets(y)
        if not begun:
            self.classes_ = np.unique(y if classes is None else classes)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise errors.ESTIMATOR_CLASSES(given=unknown.tolist(), known=np.asarray(self.classes_).tolist())
        numbers = np.searchsorted(self.classes_, y).astype(np.int64)
        if begun:
            X = X.astype(next(self.module_.parameters()).dtype)
        X, numbers, weights = self._weighed(X, numbers, sample_weight)
        self._train(X, numbers, weights, len(self.classes_), 1, further=begun)
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted label of each example."""
        found = self._outputs(X)
        return self.classes_[found.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities."""
        return F.log_softmax(from_numpy(self._outputs(X)), 1).numpy()

    def _losses(self, found: Any, targets: Any) -> Any:
        return F.cross_entropy(found, targets, reduction="none")

    def _score(self, inputs: Array, targets: Array, weights: Array | None = None) -> float:
        return float(np.average(self._forward(inputs).argmax(axis=1) == targets, weights=weights))


class Regressor(RegressorMixin, _Network):  # type: ignore[misc]  # scikit-learn has no types
    """A neural network that predicts numbers, as an estimator of scikit-learn.

    The arguments are those of `Classifier`; a module returns one output for each target. Targets are (examples,) or
    (examples, targets); scale them to about unit size (with `sklearn.compose.TransformedTargetRegressor`).

    Example:
        >>> import numpy as np
        >>> from glassgrad.sklearn import Regressor
        >>> X = np.linspace(-1, 1, 64)[:, None]
        >>> model = Regressor(rate=0.01, random_state=0).fit(X, X[:, 0] ** 2)
        >>> model.score(X, X[:, 0] ** 2) > 0.95
        True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network on examples.

        Args:
            X: the examples, (examples, features), float64 or float32; other numbers become float64.
            y: numbers to predict, (examples,) or (examples, targets).
            sample_weight: how much each example counts, (examples,), none negative; see `Classifier.fit`.

        Returns:
            The estimator itself.

        Raises:
            ArgumentError: an option is invalid, or a weight is negative.
            ShapeError: the module does not return one output for each target.
            ValueError: scikit-learn refuses X, y or the weights (NaN, differing lengths, ...).
        """
        X, y = self._checked(X, y, reset=True)
        X, y, weights = self._weighed(X, y, sample_weight)
        self._train(X, y, weights, y.shape[1], self.epochs)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Make one pass over some examples; arguments, result and errors are those of `fit`."""
        begun = hasattr(self, "module_")
        X, y = self._checked(X, y, reset=not begun)
        X, y, weights = self._weighed(X, y, sample_weight)
        self._train(X, y, weights, y.shape[1], 1, further=begun)
        return self

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True, reset=reset)
        if not reset:
            X = X.astype(next(self.module_.parameters()).dtype)
        if reset:
            self._flat = y.ndim == 1
        return X, np.ascontiguousarray(y.reshape(len(y), -1), X.dtype)

    def predict(self, X: Any) -> Array:
        """Return the network's predictions, in the shape of the targets."""
        found = self._outputs(X)
        return found[:, 0] if self._flat else found

    def _losses(self, found: Any, targets: Any) -> Any:
        return F.mse_loss(found, targets, reduction="none").mean(dim=1)

    def _score(self, inputs: Array, targets: Array, weights: Array | None = None) -> float:
        return -float(np.average(((self._forward(inputs) - targets) ** 2).mean(axis=1), weights=weights))


__all__ = ["Classifier", "Regressor"]
