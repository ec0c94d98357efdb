"""A program that needs only NumPy: it trains eagerly, and calls features that need more packages.

Run it in an environment that has only NumPy and glassgrad; `test_packaging.py` runs it with the other packages hidden.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np

import glassgrad as gg
from glassgrad import errors, nn, optim
from glassgrad.utils.data import DataLoader, TensorDataset


def trained(model: nn.Module, points: gg.Tensor, labels: gg.Tensor) -> tuple[float, float]:
    """Train for a few epochs; return the first and the last loss."""
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    losses = []
    for _ in range(8):
        for x, y in DataLoader(TensorDataset(points, labels), batch_size=16, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses[0], losses[-1]


def main() -> None:
    """Train four kinds of networks and meet what needs more than NumPy."""
    gg.manual_seed(0)
    points = gg.randn(64, 8)
    labels = (points.sum(1) > 0).long()
    dense = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 2))
    conv = nn.Sequential(
        nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 4, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(12, 2)
    )
    block = nn.Sequential(
        nn.Unflatten(1, (2, 4)), nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Flatten(), nn.Linear(8, 2)
    )
    for model in (dense, conv, block):
        first, last = trained(model, points, labels)
        assert last < first, (first, last)
    lstm = nn.LSTM(8, 4)
    lstm(points[None])[0].sum().backward()

    # Values against NumPy and Python where SciPy usually computes.
    assert abs(gg.erf(gg.tensor(0.5, dtype=gg.float64)).item() - 0.5204998778130465) < 1e-15
    big = gg.zeros(5000, 64, requires_grad=True)
    nn.functional.embedding(gg.arange(5000) % 7, big).sum().backward()
    assert big.grad is not None
    assert big.grad.sum().item() == 5000 * 64
    chain = [gg.randn(3, 4), gg.randn(4, 5), gg.randn(5, 2)]
    assert np.allclose(gg.einsum("ab,bc,cd->ad", *chain).numpy(), (chain[0] @ chain[1] @ chain[2]).numpy(), atol=1e-5)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert gg.compile(lambda x: (x * x).sum())(gg.ones(4)).item() == 4
    assert ["llvmlite" in str(one.message) for one in told] == [True]

    with tempfile.TemporaryDirectory() as folder:
        wanted = {
            "safetensors": lambda: gg.save(dense.state_dict(), Path(folder) / "weights.safetensors"),
            "scipy": lambda: gg.special.gammainc(gg.tensor(1.0), gg.tensor(2.0)),
            "ml_dtypes": lambda: gg.bfloat16,
            "rich": lambda: str(nn.summary(dense, (4, 8))),
        }
        for package, use in wanted.items():
            said = ""
            try:
                use()
            except errors.PackageError as error:
                said = str(error)
            assert f"pip install {package}" in said, f"{package} seems to be installed; this program is for NumPy alone"
    print("NumPy alone trains")


if __name__ == "__main__":
    main()
