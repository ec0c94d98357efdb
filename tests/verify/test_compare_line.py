"""One aligned line per comparison."""

from __future__ import annotations

import numpy as np

import glassgrad as gg
from glassgrad.verify import compare


def test_exact_approximate_and_wrong(capsys):
    x = np.array([1.0, -2.0])
    assert compare("same", x, x.copy()).exact
    near = compare("near", x, x + 1e-9)
    assert near
    assert not near.exact
    assert abs(near.maxdiff - 1e-9) < 1e-12
    far = compare("far", x, -x)
    assert not far
    assert far.maxdiff == 4.0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert len({line.index("| approximate") for line in lines}) == 1
    assert lines[0].startswith("same ")
    assert lines[2].endswith("maxdiff: 4")


def test_a_shape_that_only_broadcasts_is_wrong(capsys):
    result = compare("b", np.zeros((1, 3)), np.zeros(3))
    assert not result
    assert result.maxdiff == np.inf
    assert "shapes: (1, 3) and (3,)" in capsys.readouterr().out


def test_tensors_numbers_and_empty_arrays(capsys):
    t = gg.tensor([1.0, 2.0], requires_grad=True)
    assert compare("t", np.array([1.0, 2.0], np.float32), t).exact
    assert compare("n", 2.0, 2).exact
    assert compare("e", np.zeros((0, 3)), np.zeros((0, 3))).exact
    before = len(capsys.readouterr().out)
    compare("silent", 1.0, 1.0, show=False)
    assert before
    assert not capsys.readouterr().out


def test_float32_noise_is_approximately_equal():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    assert compare("f", x.astype(np.float32), x, show=False)
