"""The pictures of statistics over the steps and of signed gradients, and the values that `log_stats` logs."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad.doctor.quantities.histograms import signed


def model() -> Any:
    gg.manual_seed(0)
    net = gg.nn.Sequential(gg.nn.Linear(4, 8), gg.nn.Tanh(), gg.nn.Linear(8, 2))
    net(gg.randn(16, 4)).square().mean().backward()
    return net


def test_statistics_have_a_line_for_each_parameter_with_its_numbers() -> None:
    net = model()
    monitor = gg.GradientMonitor(net)
    for _ in range(3):
        monitor.update()
    figure = gg.plot_statistics(monitor)
    assert len(figure.axes) == 6
    data = monitor.data
    for axes, name in zip(
        figure.axes,
        ("gradient_mean", "gradient_std", "gradient_norm", "parameter_mean", "parameter_std", "parameter_norm"),
        strict=True,
    ):
        drawn = np.stack([line.get_ydata() for line in axes.lines], axis=1)
        np.testing.assert_array_equal(drawn, getattr(data, name))
    few = gg.plot_statistics(monitor, "*.weight")
    assert len(few.axes[0].lines) == 2


def test_one_sample_makes_no_line() -> None:
    with pytest.raises(gg.errors.ArgumentError, match="one sample makes no line"):
        gg.plot_statistics(model())


def test_signed_histograms_are_a_grid_with_mean_and_deviation() -> None:
    net = model()
    figure = gg.plot_gradient_histograms(net, signed=True)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left").splitlines()[0] for axes in shown] == [
        "0.weight", "0.bias", "2.weight", "2.bias",
    ]  # fmt: skip  # in a row
    g = net[0].weight.grad.numpy()
    assert f"mean {g.mean():.2g}, std {g.std():.2g}" in shown[0].get_title(loc="left")
    counts, edges = signed(g)
    assert counts.sum() == g.size
    assert edges[0] < g.mean() < edges[-1]
    with pytest.raises(gg.errors.ArgumentError, match="no parameter has a gradient"):
        gg.plot_gradient_histograms(gg.nn.Linear(2, 2), signed=True)
    with pytest.raises(gg.errors.KindError, match="plot_gradient_histograms draws"):
        gg.plot_gradient_histograms(3, signed=True)


def test_signed_histograms_over_the_steps_have_mean_and_deviation_as_lines(tmp_path: Path) -> None:
    net = model()
    monitor = gg.GradientMonitor(net, path=tmp_path / "record.npz")
    for factor in (1.0, 3.0, 0.5):
        for parameter in net.parameters():
            parameter.grad *= factor
        monitor.update()
    monitor.close()
    data = monitor.data
    np.testing.assert_array_equal(data.gradient_signed.sum(-1), np.broadcast_to(data.sizes, (3, 4)))
    for source in (monitor, tmp_path / "record.npz"):
        figure = gg.plot_gradient_histograms(source, "*.weight", signed=True)
        first = figure.axes[0]
        drawn = [line.get_ydata() for line in first.lines]
        mean, std = data.gradient_mean[:, 0], data.gradient_std[:, 0]
        np.testing.assert_array_equal(drawn, [mean - std, mean + std, mean])
        shares = np.ma.filled(first.collections[0].get_array(), 0)
        assert shares[:, 2].sum() == pytest.approx(1)
        assert (shares[:, 2] > 0).sum() < (shares[:, 1] > 0).sum()  # a sixth as wide
    older = dict(np.load(tmp_path / "record.npz"))
    for name in ("gradient_signed", "curvature"):
        del older[name]
    np.savez(tmp_path / "older.npz", **older)
    found = gg.GradientMonitor.load(tmp_path / "older.npz")
    assert found.gradient_signed.shape == (3, 4, 40)
    assert np.isnan(found.curvature).all()
    with pytest.raises(gg.errors.ArgumentError, match="has no signed histograms"):
        gg.plot_gradient_histograms(found, signed=True)


def test_counts_are_those_of_numpy_and_outliers_are_in_the_outer_bins() -> None:
    g = np.concatenate([np.random.default_rng(0).normal(size=1000), [50.0, np.nan]])
    counts, edges = signed(g)
    assert counts.sum() == 1001
    assert counts[-1] >= 1
    inside = g[(g > edges[0]) & (g < edges[-1])]
    np.testing.assert_array_equal(np.histogram(inside, edges)[0][1:-1], counts[1:-1])


def test_the_old_name_draws_the_flow() -> None:
    figure = gg.visualize_gradient_flow(model())
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]


def test_log_stats_hands_the_same_numbers_to_every_kind_of_logger() -> None:
    seen: dict[str, dict[str, float]] = {}

    class Board:
        def add_scalar(self, name: str, value: float, step: int) -> None:
            seen.setdefault("board", {})[name] = value
            assert step == 7

    class Runs:
        def log(self, values: dict[str, float], step: int) -> None:
            seen["runs"] = values
            assert step == 7

    class Lightning:
        def log_metrics(self, values: dict[str, float], step: int) -> None:
            seen["lightning"] = values
            assert step == 7

    class Ours:
        def write(self, event: str, step: int, **values: float) -> None:
            seen["ours"] = values
            assert (event, step) == ("gradients", 7)

    net = model()
    for logger in (Board(), Runs(), Lightning(), Ours()):
        gg.GradientMonitor(net).log_stats(logger, 7)
    gg.GradientMonitor(net).log_stats(
        lambda name, value, step: seen.setdefault("function", {}).update({name: value}), 7
    )
    first = seen["board"]
    assert len(seen) == 5
    assert all(values == first for values in seen.values())
    assert first["gradient_norm/0.weight"] == pytest.approx(float(np.linalg.norm(net[0].weight.grad.numpy())), rel=1e-6)
    assert first["parameter_std/2.bias"] == pytest.approx(float(net[2].bias.array.std()), rel=1e-6)
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    own = logging.getLogger("a test of glassgrad")
    own.addHandler(handler)
    own.setLevel(logging.INFO)
    gg.GradientMonitor(net).log_stats(own, 7)
    assert text.getvalue().startswith("step 7: total_norm ")
    with pytest.raises(gg.errors.KindError, match="log_stats expects a logger"):
        gg.GradientMonitor(net).log_stats(object())
