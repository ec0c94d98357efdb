"""Thinning of long curves: the points that may be dropped, and those that never are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from glassgrad.report.thinning import thinned

NUMBERS = st.floats(-1e6, 1e6, width=32) | st.sampled_from([np.inf, -np.inf, np.nan])


@settings(max_examples=30, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=300), st.integers(4, 60))
def test_extremes_and_ends_stay_and_there_are_few_enough(values: list[float], most: int) -> None:
    steps, kept = thinned(np.arange(len(values)) * 3, np.array(values), most)
    assert len(steps) == len(kept) <= max(most, 2)
    assert (np.diff(steps) > 0).all()
    np.testing.assert_array_equal([kept[0], kept[-1]], [values[0], values[-1]])
    known = np.array(values)[~np.isnan(values)]
    if known.size:
        assert (np.nanmin(kept), np.nanmax(kept)) == (known.min(), known.max())
    assert set(kept[~np.isnan(kept)]) <= set(known)


def test_each_column_keeps_its_own_spikes_where_they_are() -> None:
    values = np.zeros((10_000, 3))
    values[1_234, 0], values[5_678, 1], values[5_679, 2] = 7.0, -8.0, np.inf
    steps, kept = thinned(np.arange(10_000), values, 200)
    assert len(steps) <= 200
    for column, (step, spike) in enumerate(((1_234, 7.0), (5_678, -8.0), (5_679, np.inf))):
        at = np.flatnonzero(kept[:, column] == spike)
        assert len(at) == 1
        assert abs(steps[at[0]] - step) <= 101
