"""SciPy on tensors: values against SciPy on arrays, gradients against central differences (see scipy_functions.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy
import scipy.special as sp

import glassgrad as gg


@pytest.fixture(scope="module")
def verdicts() -> dict[str, str]:
    script = Path(__file__).parent / "scipy_functions.py"
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    process = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env=environment
    )
    assert process.returncode == 0, process.stderr
    found: dict[str, str] = json.loads(process.stdout)
    return found


def test_every_function_is_right_or_refuses_whatever_the_version(verdicts: dict[str, str]) -> None:
    """SciPy follows the array API in more functions from version to version; no gradient is lost or wrong in any."""
    bad = {name: text for name, text in verdicts.items() if text != "right" and not text.startswith("refused: ")}
    assert not bad
    for text in verdicts.values():
        assert text == "right" or "would drop the gradient" in text or "has no derivative here" in text
    assert len(verdicts) >= 41


# The list in the documentation is that of this version and later ones.
@pytest.mark.skipif(tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17), reason="an older SciPy does less")
def test_functions_that_follow_the_array_api_differentiate(verdicts: dict[str, str]) -> None:
    wrong = {name: text for name, text in verdicts.items() if not name.startswith("either") and text != "right"}
    assert not wrong


def test_the_page_lists_what_was_tried(verdicts: dict[str, str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")
    section = page.partition("## SciPy on tensors")[2]
    rows = {line.split("`")[1]: line for line in section.splitlines() if line.startswith("| `scipy.")}
    for name in verdicts:
        if not name.startswith("either"):
            module, _, function = name.partition(".")
            assert f"`{function}`" in rows[f"scipy.{module}"], name


@pytest.mark.parametrize(
    "name", ["erf", "erfc", "gammaln", "psi", "i0", "i1", "expit", "ndtr", "entr", "log_expit", "gamma"]
)
def test_special_functions_without_the_array_api(name: str) -> None:
    x = gg.tensor([0.5, 1.5], requires_grad=True)
    function = getattr(sp, name)
    y = function(x)
    np.testing.assert_allclose(y.detach().numpy(), function(np.float32([0.5, 1.5])), rtol=1e-5)
    y.sum().backward()
    step = 1e-6
    numbers = np.array([0.5, 1.5])
    slope = (function(numbers + step) - function(numbers - step)) / (2 * step)
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-4)
