"""Neural-network building blocks with PyTorch's names; each family is a file, loaded when it is first used.

Layers take arrays or tensors and return tensors. `module.py` and `parameter.py` define a module and its state,
`state.py` loads one, `hooks.py` calls hooks, `containers.py` holds lists of modules, `init.py` draws weights,
`overview.py` prints a model's table, `parallel.py` trains on several ranks. `layers/` has one file for each family of
layers, `functional/` has the functions behind them, and `utils/` has functions for whole models.
"""

from __future__ import annotations

from glassgrad.base.families import serve

# PyTorch's names that this library lacks, and their replacements.
_INSTEAD = {
    "attention": "leave it out: functional.scaled_dot_product_attention has only one implementation.",
    "Dense": "Linear(in_features, out_features).",
    "modules": "use its classes from here: nn.Linear instead of nn.modules.linear.Linear.",
    "LazyInstanceNorm1d": "InstanceNorm1d with the number of features.",
    "LazyInstanceNorm2d": "InstanceNorm2d with the number of features.",
    "LazyInstanceNorm3d": "InstanceNorm3d with the number of features.",
}

__getattr__, __dir__ = serve(
    __name__,
    __path__,
    modules=("functional", "init", "parallel", "parameter", "utils"),
    apart=("init",),
    inner=("layers",),
    instead=_INSTEAD,
)
