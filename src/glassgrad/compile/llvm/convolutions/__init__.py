"""Convolutions and pooling in two dimensions.

In: sizes of images, weights and windows (`windows.py`). Out: kernels for results and both gradients.

`kernels.py` chooses a plan; the plans stand beside it: columns (`windows.py`), `direct.py`, `channels.py`,
`depthwise.py`, minimal filtering (`winograd*.py` on the transforms of `filtering.py`). `pool.py` is pooling.
"""
