"""Functions for whole models, with PyTorch's names.

`clip_grad.py` limits gradients, `vectors.py` turns parameters into one vector and back, `rnn.py` pads and packs
sequences, `parametrize.py` and `parametrizations.py` compute a weight from other tensors, `norms.py` has their older
form, and `computed.py` the mechanism of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassgrad.base import documents
from glassgrad.errors.missing import getter, lister
from glassgrad.nn.utils import parametrizations, parametrize, rnn
from glassgrad.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from glassgrad.nn.utils.norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from glassgrad.nn.utils.vectors import parameters_to_vector, vector_to_parameters

# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "prune": "multiply the weight by a mask that is a buffer.",
    "stateless": "func.functional_call.",
    "convert_parameters": "its functions are here: nn.utils.parameters_to_vector, vector_to_parameters.",
    "fusion": "compile fuses what stands side by side.",
}

if not TYPE_CHECKING:
    __getattr__ = getter(__name__, _INSTEAD)

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
__all__ += ["parameters_to_vector", "parametrizations", "parametrize", "remove_spectral_norm", "remove_weight_norm"]
__all__ += ["rnn", "spectral_norm", "vector_to_parameters", "weight_norm"]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
