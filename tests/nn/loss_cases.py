"""Calls of every loss with its options, for the tests that compare with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.nn.layer_cases import Case, case, fixed, integers, log_probabilities, positive, signs, unit

REDUCTIONS = ("mean", "sum", "none")
_WEIGHT = np.array([0.5, 2.0, 1.0, 0.1], np.float32)


def grid(name: str, inputs: Any, *options: dict[str, Any], **facts: Any) -> list[Case]:
    """Every reduction without options, and every option with the mean."""
    return [
        *(case(name, inputs=inputs, reduction=reduction, **facts) for reduction in REDUCTIONS),
        *(case(name, inputs=inputs, **given, **facts) for given in options),
    ]


def soft(*shape: int) -> Any:
    """Probabilities along dimension 1."""

    def draw(rng: np.random.Generator) -> Any:
        x = rng.uniform(0.1, 1, shape)
        return (x / x.sum(1, keepdims=True)).astype(np.float32)

    return draw


LOSSES = [
    *grid("CrossEntropyLoss", [(5, 4), integers(4, 5)], {"weight": _WEIGHT}, {"ignore_index": 1},
          {"label_smoothing": 0.2}, {"weight": _WEIGHT, "ignore_index": 2, "label_smoothing": 0.1},
          {"weight": _WEIGHT, "reduction": "none"}),
    case("CrossEntropyLoss", inputs=[(2, 4, 3, 2), integers(4, 2, 3, 2)], weight=_WEIGHT),
    case("CrossEntropyLoss", inputs=[(4,), fixed(2)]),
    case("CrossEntropyLoss", inputs=[(5, 4), soft(5, 4)]),
    case("CrossEntropyLoss", inputs=[(5, 4), soft(5, 4)], weight=_WEIGHT, label_smoothing=0.1),
    *grid("NLLLoss", [log_probabilities(5, 4), integers(4, 5)], {"weight": _WEIGHT}, {"ignore_index": 3}),
    *grid("MSELoss", [(3, 4), (3, 4)]), *grid("L1Loss", [(3, 4), (3, 4)]),
    *grid("SmoothL1Loss", [(3, 4), (3, 4)], {"beta": 0.5}, {"beta": 0.0}),
    *grid("HuberLoss", [(3, 4), (3, 4)], {"delta": 0.5}),
    *grid("BCELoss", [unit(3, 4), unit(3, 4)], {"weight": _WEIGHT}),
    *grid("BCEWithLogitsLoss", [(3, 4), unit(3, 4)], {"weight": _WEIGHT}, {"pos_weight": _WEIGHT}),
    *grid("KLDivLoss", [log_probabilities(3, 4), unit(3, 4)], {"reduction": "batchmean"}),
    case("KLDivLoss", inputs=[log_probabilities(3, 4), log_probabilities(3, 4)], log_target=True, reduction="sum"),
    *grid("GaussianNLLLoss", [(3, 4), (3, 4), positive(3, 4)], {"full": True}),
    *grid("PoissonNLLLoss", [(3, 4), positive(3, 4)], {"full": True}),
    case("PoissonNLLLoss", inputs=[positive(3, 4), positive(3, 4)], log_input=False),
    *grid("HingeEmbeddingLoss", [(3, 4), signs(3, 4)], {"margin": 0.5}),
    *grid("MarginRankingLoss", [(5,), (5,), signs(5)], {"margin": 0.5}),
    *grid("CosineEmbeddingLoss", [(5, 3), (5, 3), signs(5)], {"margin": 0.2}),
    *grid("SoftMarginLoss", [(3, 4), signs(3, 4)], frozen=True),
    *grid("MultiMarginLoss", [(5, 4), integers(4, 5)], {"p": 2}, {"margin": 0.3, "weight": _WEIGHT}),
    *grid("MultiLabelMarginLoss", [(2, 4), fixed([[3, 0, -1, 1], [1, -1, 0, 2]])]),
    *grid("MultiLabelSoftMarginLoss", [(3, 4), unit(3, 4)], {"weight": _WEIGHT}),
    *grid("TripletMarginLoss", [(5, 3), (5, 3), (5, 3)], {"margin": 0.3, "p": 1.0}, {"swap": True}),
    *grid("TripletMarginWithDistanceLoss", [(5, 3), (5, 3), (5, 3)], {"swap": True, "margin": 0.5}),
    *(case("CTCLoss", inputs=[log_probabilities(6, 2, 4), integers(4, 2, 3, low=1), fixed([6, 5]), fixed([3, 2])],
           reduction=reduction, compiled=False) for reduction in REDUCTIONS),
    case("CTCLoss", 3, inputs=[log_probabilities(6, 2, 4), integers(3, 2, 3), fixed([6, 2]), fixed([3, 3])],
         zero_infinity=True, compiled=False),
]  # fmt: skip  # a table
