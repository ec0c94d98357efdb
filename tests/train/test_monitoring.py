"""`Monitoring` as a callback of `Trainer`: the same weights, the norms before and after clipping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.train import Monitoring, Trainer, TrainingConfig
from glassgrad.utils.data import DataLoader, TensorDataset


def fitted(engine: str, callbacks: list[Any], folder: Path, **options: Any) -> Any:
    gg.manual_seed(0)
    x = gg.randn(96, 4)
    loader = DataLoader(TensorDataset(x, (x[:, 0] > x[:, 1]).long()), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    config = TrainingConfig(epochs=3, progress="none", engine=engine, run_dir=str(folder), **options)
    Trainer(model, optimizer, nn.functional.cross_entropy, loader, config=config, callbacks=callbacks).fit()
    return model


@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_a_trainer_that_is_watched_gives_the_same_weights(engine: str, tmp_path: Path) -> None:
    alone = fitted(engine, [], tmp_path / "alone", clip_norm=0.2)
    watching = Monitoring(4)
    watched = fitted(engine, [watching], tmp_path / "watched", clip_norm=0.2)
    for (name, one), other in zip(alone.state_dict().items(), watched.state_dict().values(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=name)
    data = gg.GradientMonitor.load(tmp_path / "watched" / "monitor.npz")
    assert data.steps.tolist() == [0, 4, 8, 12, 16]
    assert np.isfinite(data.update_norm).all()
    assert np.isfinite(data.activation_dead[:, 2]).all()
    np.testing.assert_allclose(data.total_norm_clipped, np.minimum(data.total_norm, 0.2), rtol=1e-4)
