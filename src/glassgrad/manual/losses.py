"""Losses: one number from a prediction and a target, and the gradient with respect to the prediction.

n is the number of terms that `reduction="mean"` averages over: the rows for the class losses, all entries for
the others. With `reduction="sum"` read n as 1 everywhere below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from glassgrad import errors
from glassgrad.manual.activations import log_softmax, sigmoid
from glassgrad.manual.protocols import Array, Parameter, Saving, check_range

LOG_FLOOR = -100.0  # of BCELoss, as in PyTorch: log(0) would be -inf


class _Loss(Saving, ABC):
    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in {"mean", "sum"}:
            raise errors.MANUAL_OPTION(
                layer=type(self).__name__, name="reduction", given=reduction, expected="'mean' or 'sum'"
            )
        self.reduction = reduction

    def __call__(self, prediction: Array, target: Array) -> float:
        return self.forward(prediction, target)

    @abstractmethod
    def forward(self, prediction: Array, target: Array) -> float: ...

    @abstractmethod
    def backward(self, dout: float = 1.0) -> Array: ...

    def parameters(self) -> list[Parameter]:
        return []

    def total(self, terms: Array) -> float:
        return float(terms.mean() if self.reduction == "mean" else terms.sum())

    def share(self, count: int, dout: float) -> float:
        """The common factor of every term's gradient: the cotangent of the loss, divided by n for a mean."""
        return dout / count if self.reduction == "mean" else dout

    def check_same(self, prediction: Array, target: Array) -> None:
        if np.shape(prediction) != np.shape(target):
            raise errors.MANUAL_TARGET(
                loss=type(self).__name__, target=np.shape(target), expected=str(np.shape(prediction))
            )

    def check_classes(self, prediction: Array, target: Array) -> None:
        if prediction.ndim != 2 or target.shape != prediction.shape[:1]:
            raise errors.MANUAL_TARGET(
                loss=type(self).__name__, target=target.shape, expected=f"(n,) class numbers for {prediction.shape}"
            )
        check_range(type(self).__name__, "label", target, prediction.shape[1])


class NLLLoss(_Loss):
    """L = -1/n sum_i y[i, t[i]]: minus the log-probability that the prediction gave to the target class.

    Shapes: y (n, c) of log-probabilities, t (n,) of class numbers. One entry of each row affects L:

        dy[i, j] = -1/n where j = t[i], else 0

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> loss = manual.NLLLoss()
        >>> round(float(loss.forward(np.array([[-0.1, -2.4]]), np.array([0]))), 4)
        0.1
        >>> loss.backward().round(4)
        array([[-1.,  0.]])
    """

    def forward(self, prediction: Array, target: Array) -> float:
        self.check_classes(prediction, target)
        self.saved = (prediction, target)
        return self.total(-prediction[np.arange(target.size), target])

    def backward(self, dout: float = 1.0) -> Array:
        y, target = self.saved
        dy = np.zeros_like(y)
        dy[np.arange(target.size), target] = -self.share(target.size, dout)
        return dy


class CrossEntropyLoss(_Loss):
    """L = -1/n sum_i log softmax(x)[i, t[i]].

    Shapes: x (n, c) of logits, t (n,) of class numbers. It is NLLLoss after LogSoftmax; substituting
    the first gradient into the second gives

        dy[i, j] = -[j = t[i]] / n                        (NLLLoss)
        dx       = dy - softmax(x) sum_j dy[i, j]          (LogSoftmax), and the sum over a row is -1/n
        dx       = (softmax(x) - onehot(t)) / n

    the prediction minus the target.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> loss = manual.CrossEntropyLoss()
        >>> round(float(loss.forward(np.array([[2.0, 0.0]]), np.array([0]))), 4)
        0.1269
        >>> loss.backward().round(4)
        array([[-0.1192,  0.1192]])
    """

    def forward(self, prediction: Array, target: Array) -> float:
        self.check_classes(prediction, target)
        log_probability = log_softmax(prediction, -1)
        self.saved = (log_probability, target)
        return self.total(-log_probability[np.arange(target.size), target])

    def backward(self, dout: float = 1.0) -> Array:
        log_probability, target = self.saved
        dx = np.exp(log_probability)
        dx[np.arange(target.size), target] -= 1
        dx *= self.share(target.size, dout)
        return dx


class BCELoss(_Loss):
    """L = -1/n sum (t log p + (1 - t) log(1 - p)); p, t of the same shape, between 0 and 1.

        dp = -1/n (t / p - (1 - t) / (1 - p)) = 1/n (p - t) / (p (1 - p))

    Logarithms are limited to at least -100 and the denominator to at least 1e-12, as in PyTorch.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> loss = manual.BCELoss()
        >>> round(float(loss.forward(np.array([0.9, 0.2]), np.array([1.0, 0.0]))), 4)
        0.1643
        >>> loss.backward().round(4)
        array([-0.5556,  0.625 ])
    """

    def forward(self, prediction: Array, target: Array) -> float:
        self.check_same(prediction, target)
        self.saved = (prediction, target)
        with np.errstate(divide="ignore"):  # the floor limits log(0)
            log_p, log_q = np.log(prediction), np.log1p(-prediction)
        return self.total(-(target * np.maximum(log_p, LOG_FLOOR) + (1 - target) * np.maximum(log_q, LOG_FLOOR)))

    def backward(self, dout: float = 1.0) -> Array:
        p, target = self.saved
        return self.share(p.size, dout) * (p - target) / np.maximum(p * (1 - p), 1e-12)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of p = sigmoid(x), in a form that cannot overflow; x, t of the same shape.

    -log p       = log(1 + e^-x)
    -log (1 - p) = log(1 + e^-x) + x
    L  = 1/n sum (log(1 + e^-x) + (1 - t) x) = 1/n sum (max(x, 0) - t x + log(1 + e^-|x|))
    dx = 1/n (p - t) / (p (1 - p)) · p (1 - p) = (sigmoid(x) - t) / n

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> loss = manual.BCEWithLogitsLoss()
        >>> round(float(loss.forward(np.array([2.0, -1.0]), np.array([1.0, 0.0]))), 4)
        0.2201
        >>> loss.backward().round(4)
        array([-0.0596,  0.1345])
    """

    def forward(self, prediction: Array, target: Array) -> float:
        self.check_same(prediction, target)
        x = prediction
        self.saved = (x, target)
        return self.total(np.maximum(x, 0) - target * x + np.log1p(np.exp(-np.abs(x))))

    def backward(self, dout: float = 1.0) -> Array:
        x, target = self.saved
        return self.share(x.size, dout) * (sigmoid(x) - target)


class MSELoss(_Loss):
    """L = 1/n sum (y - t)²; y, t of the same shape.

    dy = 2 (y - t) / n

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> loss = manual.MSELoss()
        >>> round(float(loss.forward(np.array([1.0, 3.0]), np.array([2.0, 1.0]))), 4)
        2.5
        >>> loss.backward().round(4)
        array([-1.,  2.])
    """

    def forward(self, prediction: Array, target: Array) -> float:
        self.check_same(prediction, target)
        self.saved = prediction - target
        return self.total(self.saved * self.saved)

    def backward(self, dout: float = 1.0) -> Array:
        return 2 * self.share(self.saved.size, dout) * self.saved


class L1Loss(_Loss):
    """L = 1/n sum |y - t|; y, t of the same shape.

    dy = sign(y - t) / n, which is 0 where they are equal.

    Example:
        >>> import numpy as np
        >>> from glassgrad import manual
        >>> loss = manual.L1Loss()
        >>> round(float(loss.forward(np.array([1.0, 3.0]), np.array([2.0, 1.0]))), 4)
        1.5
        >>> loss.backward().round(4)
        array([-0.5,  0.5])
    """

    def forward(self, prediction: Array, target: Array) -> float:
        self.check_same(prediction, target)
        self.saved = prediction - target
        return self.total(np.abs(self.saved))

    def backward(self, dout: float = 1.0) -> Array:
        return self.share(self.saved.size, dout) * np.sign(self.saved)
