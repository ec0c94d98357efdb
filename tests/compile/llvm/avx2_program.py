"""A program that uses each kind of native code once, against NumPy in float64; it prints the detected processor."""

from __future__ import annotations

import json
import sys

import numpy as np

import glassgrad as gg
from glassgrad import nn
from glassgrad.compile.llvm.module.target import host
from glassgrad.nn import functional as F
from glassgrad.ops.kernels import native, parallel

rng = np.random.default_rng(0)


def drawn(*shape: int) -> gg.Tensor:
    """Return numbers of about 1 that want a gradient."""
    return gg.tensor(rng.standard_normal(shape).astype(np.float32), requires_grad=True)


def doubled(*tensors: gg.Tensor) -> list[gg.Tensor]:
    """Return the same numbers in float64, for NumPy alone to compute with."""
    return [gg.tensor(one.detach().numpy().astype(np.float64), requires_grad=True) for one in tensors]


def agree(name: str, found: list[np.ndarray], truth: list[np.ndarray], tolerance: float = 5e-6) -> None:
    """Compare arrays with the true ones, in terms of the largest number."""
    for one, other in zip(found, truth, strict=True):
        error = np.abs(one - other).max() / np.abs(other).max()
        assert one.dtype == np.float32, (name, one.dtype)
        assert error <= tolerance, f"{name}: wrong by {error:.1e}"


def check_eager_products() -> None:
    """Products of all layouts: ours, where there are some for these vectors, or BLAS's."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((517, 600), (600, 773)))
    truth = a.astype(np.float64) @ b.astype(np.float64)
    for left in (a, np.asfortranarray(a)):
        for right in (b, np.asfortranarray(b)):
            agree("product", [(gg.tensor(left) @ gg.tensor(right)).numpy()], [truth])


def check_eager(name: str, function: object, *tensors: gg.Tensor) -> None:
    """Compare a function and its gradients with themselves in float64, computed by NumPy without native code."""
    results = []
    for given, off in ((tensors, False), (doubled(*tensors), True)):
        native.kernels.off = off
        out = function(*given)
        (out * out).sum().backward()
        results.append([out.detach().numpy(), *(one.grad.numpy() for one in given)])
    native.kernels.off = False
    agree(name, *results, tolerance=2e-5)


def check_compiled_step() -> None:
    """A step with a convolution, batch norm, products and an update; the truth is the eager step in float64."""
    x, labels = rng.standard_normal((16, 3, 12, 12)).astype(np.float32), np.arange(16) % 10

    def losses(dtype: type, compiled: bool) -> list[float]:
        gg.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(576, 40), nn.Tanh(), nn.Linear(40, 10),
        ).to(gg.float32 if dtype is np.float32 else gg.float64)  # fmt: skip  # a table of layers
        optimizer = gg.optim.AdamW(net.parameters(), lr=1e-3)

        def step(x: gg.Tensor) -> gg.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), gg.tensor(labels))
            loss.backward()
            optimizer.step()
            return loss

        run = gg.compile(step, backend="llvm") if compiled else step
        return [run(gg.tensor(x.astype(dtype))).item() for _ in range(4)]

    np.testing.assert_allclose(losses(np.float32, True), losses(np.float64, False), rtol=1e-5)


def main() -> None:
    check_eager_products()
    check_eager("convolution", lambda x, w: F.conv2d(x, w, padding=1), drawn(8, 16, 24, 24), drawn(32, 16, 3, 3))
    check_eager("attention", F.scaled_dot_product_attention, *(drawn(4, 4, 96, 32) for _ in range(3)))
    check_eager("gelu", F.gelu, drawn(600, 700))
    check_compiled_step()
    blas = parallel.numpys_blas()
    said = {
        "cpu": host().cpu, "features": host().features, "vector_bytes": host().vector_bytes,
        "amx": host().may_use_amx, "bfloat": host().has_bfloat, "blas": "" if blas is None else blas.core,
        "numpy": np.show_config(mode="dicts")["SIMD Extensions"].get("found", []),
    }  # fmt: skip  # a table
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
