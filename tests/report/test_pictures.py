"""The pictures: they show the recorded numbers, names are readable, and odd records cause no error."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import errors
from glassgrad.doctor import MonitorData
from tests.thinning import covering

F = gg.nn.functional
PLOTS = ("plot_gradient_flow", "plot_gradient_histograms", "plot_total_norm", "plot_activations")


def net(depth: int) -> Any:
    gg.manual_seed(0)
    nn = gg.nn
    layers = [part for at in range(depth - 1) for part in (nn.Linear(6, 6), nn.Tanh() if at % 2 else nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(6, 3))


def record(depth: int, steps: int = 5, clip: bool = True) -> Any:
    model = net(depth)
    x, y = gg.randn(12, 6), gg.randint(0, 3, (12,))
    optimizer = gg.optim.SGD(model.parameters(), lr=0.1)
    monitor = gg.GradientMonitor(model, every=2)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        monitor.update(loss)
        if clip:
            gg.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            monitor.update_after_clip()
        optimizer.step()
    return monitor


@pytest.fixture(scope="module")
def records() -> dict[int, Any]:
    return {depth: record(depth) for depth in (2, 60)}


def overlapping(figure: Any, texts: list[Any]) -> list[tuple[str, str]]:
    """Pairs of neighbouring labels whose boxes meet, after the picture was laid out."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    return [(a[0], b[0]) for a, b in itertools.pairwise(boxes) if a[1].overlaps(b[1])]


@pytest.mark.parametrize(("name", "depth"), covering(PLOTS, [60, 2]))
def test_every_picture_is_drawn_for_flat_and_for_deep_nets(
    name: str, depth: int, records: dict[int, Any], tmp_path: Path
) -> None:
    figure = getattr(gg, name)(records[depth])
    path = tmp_path / "picture.png"
    figure.savefig(path)
    assert path.read_bytes()[:4] == b"\x89PNG"
    width, height = figure.get_size_inches()
    assert 5 <= width <= 16
    assert 2 <= height <= 24


@pytest.mark.parametrize("depth", [2, 60])
def test_the_flow_has_a_row_for_each_parameter_with_its_numbers(depth: int, records: dict[int, Any]) -> None:
    data = records[depth].data
    figure = gg.plot_gradient_flow(data)
    (axes,) = figure.axes
    labels = axes.get_yticklabels()
    assert [label.get_text() for label in labels] == list(data.parameters)
    assert overlapping(figure, labels) == []
    assert axes.get_xscale() == "log"
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    for label, expected in {
        "mean": data.gradient_abs_mean[-1],
        "standard deviation": data.gradient_std[-1],
        "max": data.gradient_abs_max[-1],
        "mean, step 0": data.gradient_abs_mean[0],
    }.items():
        np.testing.assert_array_equal(lines[label], np.where(expected > 0, expected, np.nan))
    assert axes.yaxis_inverted()


def test_the_flow_of_a_model_at_this_moment_or_of_a_step_before(records: dict[int, Any]) -> None:
    model = net(2)
    F.cross_entropy(model(gg.randn(12, 6)), gg.randint(0, 3, (12,))).backward()
    (axes,) = gg.plot_gradient_flow(model).axes
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    expected = [abs(parameter.grad.numpy()).mean() for parameter in model.parameters()]
    np.testing.assert_allclose(lines["mean"], expected, rtol=1e-6)
    data = records[2].data
    (axes,) = gg.plot_gradient_flow(data, step=3, parameters="*.weight").axes
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["mean"], data.gradient_abs_mean[1, [0, 2]])


def test_what_has_no_gradient_or_no_number_is_said_in_words() -> None:
    model = net(3)
    model[0].bias.requires_grad = False
    x = gg.randn(12, 6)
    monitor = gg.GradientMonitor(model)
    F.cross_entropy(model(x), gg.randint(0, 3, (12,))).backward()
    model[2].weight.grad[0, 0] = float("nan")
    model[4].bias.grad[...] = 0.0
    monitor.update()
    (axes,) = gg.plot_gradient_flow(monitor).axes
    texts = {text.get_text() for text in axes.texts}
    assert texts == {"no gradient", "1 NaN or infinite", "exactly zero"}
    figure = gg.plot_gradient_histograms(monitor)
    remarks = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {"no gradient", "100% exactly 0"} <= remarks
    figure = gg.plot_total_norm(monitor)
    assert any("NaN or infinite (1)" in str(line.get_label()) for line in figure.axes[0].get_lines())


def test_a_heat_map_shows_the_shares_of_the_counts(records: dict[int, Any]) -> None:
    data = records[2].data
    figure = gg.plot_gradient_histograms(data)
    maps = [axes for axes in figure.axes if axes.collections and axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in maps] == list(data.parameters)
    drawn = maps[0].collections[0].get_array().filled(0)
    np.testing.assert_allclose(drawn, (data.gradient_counts[:, 0, 1:-1] / data.sizes[0]).T)
    np.testing.assert_allclose(drawn.sum(0) + data.gradient_counts[:, 0, 0] / data.sizes[0], 1)


def test_of_many_parameters_the_matrices_are_shown_and_it_is_said(records: dict[int, Any]) -> None:
    figure = gg.plot_gradient_histograms(records[60])
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")]
    assert len(titles) == 60
    assert all(title.endswith("weight") for title in titles)
    assert "weight matrices only" in figure.get_suptitle()
    figure = gg.plot_gradient_histograms(records[60], parameters=["0.bias", "4.bias"])
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.get_title(loc="left")] == ["0.bias", "4.bias"]


def test_the_total_norm_before_and_after(records: dict[int, Any]) -> None:
    data = records[2].data
    (axes,) = gg.plot_total_norm(data).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["before clipping"], data.total_norm)
    np.testing.assert_array_equal(lines["after clipping"], data.total_norm_clipped)
    assert axes.get_title(loc="right") == "clipped in 100% of the sampled steps"
    (axes,) = gg.plot_total_norm(record(2, clip=False)).axes
    assert [line.get_label() for line in axes.get_lines()] == ["all gradients"]


@pytest.mark.parametrize("depth", [2, 60])
def test_activations_have_a_row_each_and_their_share_beside_it(depth: int, records: dict[int, Any]) -> None:
    data = records[depth].data
    figure = gg.plot_activations(data)
    left, right = figure.axes[:2]
    rows = [at for at, kind in enumerate(data.kinds) if kind in {"ReLU", "Tanh"}]
    labels = left.get_yticklabels()
    assert [label.get_text() for label in labels] == [f"{data.activations[at]} {data.kinds[at]}" for at in rows]
    assert overlapping(figure, labels) == []
    lost = np.where(np.isnan(data.activation_dead), data.activation_saturated, data.activation_dead)[:, rows]
    np.testing.assert_allclose(right.collections[0].get_array(), lost.T)
    assert [text.get_text() for text in right.texts] == [f"{share:.0%}" for share in lost[-1]]


def test_a_file_is_drawn_like_the_monitor_that_wrote_it(records: dict[int, Any], tmp_path: Path) -> None:
    path = tmp_path / "monitor.npz"
    records[2].data.save(path)
    (axes,) = gg.plot_total_norm(path).axes
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), records[2].data.total_norm)


def test_a_notebook_shows_a_picture_without_pyplot(records: dict[int, Any]) -> None:
    assert gg.plot_total_norm(records[2])._repr_png_()[:4] == b"\x89PNG"


def test_messages(records: dict[int, Any]) -> None:
    with pytest.raises(errors.KindError, match=r"plot_gradient_flow draws a GradientMonitor.*given int"):
        gg.plot_gradient_flow(3)
    with pytest.raises(errors.ArgumentError, match="no step was sampled"):
        gg.plot_total_norm(gg.GradientMonitor(net(2)))
    with pytest.raises(errors.ArgumentError, match=r"no parameter is called '\*.wieght'; there are 0.weight"):
        gg.plot_gradient_flow(records[2], parameters="*.wieght")
    data = records[2].data
    blind = MonitorData.gather(1, {"w": (2,)}, {}, data.samples()[:0])
    assert len(blind) == 0
    model = net(2)
    model(gg.randn(3, 6)).sum().backward()
    monitor = gg.GradientMonitor(model, activations=False)
    monitor.update()
    with pytest.raises(errors.ArgumentError, match="no activations were recorded"):
        gg.plot_activations(monitor)
