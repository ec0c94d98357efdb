"""What can be known of a training run: quantities as plain arrays, and rules that turn them into findings.

Nothing here draws or prints; `glassgrad.report` does, from what is computed here. Models may be ours or PyTorch's, and
what a finished run is judged by loads nothing of the engine: files are loaded on first use of their names.
"""

from __future__ import annotations

from glassgrad._families import serve

__getattr__, __dir__ = serve(__name__, __path__, elsewhere={"allow_nonfinite": "glassgrad.engine.nonfinite"})
