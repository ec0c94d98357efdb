"""Run functions of SciPy on tensors and print the outcomes as JSON.

It runs in a separate process, because SciPy decides at its import whether it works with other libraries' arrays.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate
import scipy.special as sp
import scipy.stats as st
from scipy.spatial.transform import Rotation

import glassgrad as gg

A = np.random.default_rng(0).normal(size=(3, 4))

CALLS: dict[str, Callable[[Any], Any]] = {
    "special.logsumexp": lambda a: sp.logsumexp(a, axis=1),
    "special.softmax": lambda a: sp.softmax(a, axis=0),
    "special.log_softmax": lambda a: sp.log_softmax(a, axis=1),
    "special.erf": sp.erf,
    "special.expit": sp.expit,
    "special.logit": lambda a: sp.logit(abs(a) / 5),
    "special.ndtr": sp.ndtr,
    "special.log_ndtr": sp.log_ndtr,
    "special.gammaln": lambda a: sp.gammaln(abs(a)),
    "special.gamma": lambda a: sp.gamma(abs(a)),
    "special.betaln": lambda a: sp.betaln(abs(a), abs(a) + 1),
    "special.multigammaln": lambda a: sp.multigammaln(abs(a) + 3, 2),
    "special.xlogy": lambda a: sp.xlogy(abs(a), abs(a)),
    "special.entr": lambda a: sp.entr(abs(a)),
    "special.rel_entr": lambda a: sp.rel_entr(abs(a), abs(a) + 1.0),
    "special.i0": sp.i0,
    "stats.entropy": lambda a: st.entropy(abs(a)),
    "stats.zscore": st.zscore,
    "stats.skew": lambda a: st.skew(a, axis=0),
    "stats.kurtosis": lambda a: st.kurtosis(a, axis=None),
    "stats.moment": lambda a: st.moment(a, 2),
    "stats.gmean": lambda a: st.gmean(abs(a)),
    "stats.hmean": lambda a: st.hmean(abs(a)),
    "stats.pmean": lambda a: st.pmean(abs(a), 2.0),
    "stats.variation": st.variation,
    "stats.sem": st.sem,
    "stats.tmean": st.tmean,
    "stats.trim_mean": lambda a: st.trim_mean(a, 0.1),
    "stats.iqr": st.iqr,
    "stats.ttest_1samp": lambda a: st.ttest_1samp(a, 0.0).statistic,
    "stats.ttest_ind": lambda a: st.ttest_ind(a[0], a[1]).statistic,
    "stats.f_oneway": lambda a: st.f_oneway(a[0], a[1]).statistic,
    "stats.bartlett": lambda a: st.bartlett(a[0], a[1]).statistic,
    "stats.circmean": st.circmean,
    "stats.directional_stats": lambda a: st.directional_stats(a).mean_direction,
    "integrate.trapezoid": scipy.integrate.trapezoid,
    "integrate.cumulative_trapezoid": scipy.integrate.cumulative_trapezoid,
    "spatial.Rotation": lambda a: Rotation.from_rotvec(a[0][:3]).as_matrix(),
    # Not every SciPy takes other libraries' arrays here, or computes with functions that have a derivative.
    "either: stats.norm.logpdf": st.norm.logpdf,
    "either: integrate.simpson": scipy.integrate.simpson,
    "either: a p-value's gradient": lambda a: st.ttest_1samp(a, 0.0).pvalue,
}


def verdict(function: Callable[[Any], Any]) -> str:
    t = gg.tensor(A, requires_grad=True)
    y = function(t)
    if not isinstance(y, gg.Tensor) or not y.requires_grad:
        return f"lost: {type(y).__name__}"
    expected = function(A)
    if not np.allclose(y.detach().numpy(), expected, rtol=1e-9):
        return "wrong value"
    rng = np.random.default_rng(1)
    weights, along = rng.normal(size=y.shape), rng.normal(size=A.shape)
    (y * weights).sum().backward()
    step = 1e-6
    ahead, behind = function(A + step * along), function(A - step * along)
    slope = float(((np.asarray(ahead) - np.asarray(behind)) * weights).sum()) / (2 * step)
    predicted = float((t.grad.numpy() * along).sum())
    return "right" if abs(slope - predicted) <= 1e-5 * (1 + abs(slope)) else f"wrong gradient: {predicted}, {slope}"


def main() -> None:
    warnings.simplefilter("ignore")
    found = {}
    for name, function in CALLS.items():
        try:
            found[name] = verdict(function)
        except gg.errors.GlassgradError as error:
            found[name] = f"refused: {error}"
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
