"""Which tests need a NumPy newer than the oldest that the library accepts."""

from __future__ import annotations

import numpy as np
import pytest

SINCE = "2.1"
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < f"{SINCE}.0"
since_numpy = pytest.mark.skipif(OLD_NUMPY, reason=f"what NumPy itself offers or answers here is that of {SINCE}")
