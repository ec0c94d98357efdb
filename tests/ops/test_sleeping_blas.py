"""The threads of OpenBLAS sleep during eager steps: awake, they spin for milliseconds on cores that the pool needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import numpy as np
THREADS = set(os.listdir("/proc/self/task")) - {str(os.getpid())}
def nanoseconds():
    return sum(int(open(f"/proc/self/task/{one}/schedstat").read().split()[0]) for one in THREADS)

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

def random(*shape):
    return gg.randn(*shape, requires_grad=True)

CASES = {
    "linear with one output": lambda r, c: nn.Linear(c, 1)(random(r, c)),
    "linear": lambda r, c: nn.Linear(c, 64)(random(r, c)),
    "linear without bias": lambda r, c: nn.Linear(c, 64, bias=False)(random(r, c)),
    "matrix times vector": lambda r, c: random(r, c) @ random(c),
    "vector times matrix": lambda r, c: random(r) @ random(r, c),
    "vectors": lambda r, c: random(r * c) @ random(r * c),
    "matrices": lambda r, c: random(r, c) @ random(c, r),
    "x xT": lambda r, c: (lambda x: x @ x.T)(random(r, c)),
    "column times row": lambda r, c: random(r, 1) @ random(1, c),
    "batches": lambda r, c: random(3, r, c) @ random(3, c, r),
    "a batch times a matrix": lambda r, c: random(3, r, c) @ random(c, r),
    "a batch times a vector": lambda r, c: random(3, r, c) @ random(c),
    "batches that broadcast": lambda r, c: random(1, r, c) @ random(3, c, r),
    "einsum": lambda r, c: gg.einsum("ij,kj->ik", random(r, c), random(r, c)),
    "mse": lambda r, c: F.mse_loss(random(r, c), gg.randn(r, c)),
    "cross entropy": lambda r, c: F.cross_entropy(random(r, c), gg.arange(r) % c),
    "layer norm": lambda r, c: F.layer_norm(random(r, c), (c,)).sin(),
    "batch norm": lambda r, c: nn.BatchNorm1d(c)(random(r, c)).sin(),
    "group norm": lambda r, c: nn.GroupNorm(4, c)(random(2, c, r)).sin(),
    "softmax": lambda r, c: F.softmax(random(r, c), -1) ** 2,
    "embedding": lambda r, c: nn.Embedding(64, 128)(gg.arange(64)).sin(),
    "attention with a mask": lambda r, c: F.scaled_dot_product_attention(
        *[random(2, 2, r, 16) for _ in range(3)], attn_mask=gg.zeros(r, r)
    ),
    "convolution": lambda r, c: nn.Conv2d(3, 8, 3, padding=1)(random(4, 3, 28, 28)),
    "transposed convolution": lambda r, c: nn.ConvTranspose2d(8, 4, 4, 2, 1)(random(8, 8, 14, 14)),
    "norm": lambda r, c: random(r, c).norm(),
    "cosine similarity": lambda r, c: F.cosine_similarity(random(r, c), random(r, c)),
}
SIZES = [(32, 200), (100, 100), (128, 96), (64, 1024), (1024, 32), (300, 300)]
awake = set()
for name, case in CASES.items():
    for size in SIZES:
        before = nanoseconds()
        y = case(*size)
        y.backward(gg.ones_like(y))
        if nanoseconds() > before:
            awake.add(name)
if not nanoseconds() and THREADS:
    np.ones((600, 600)) @ np.ones((600, 600))  # the measure itself: NumPy's own product wakes them
    assert nanoseconds(), "nothing was measured"
print(len(THREADS), sorted(awake))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are told apart by Linux's /proc")
def test_eager_ops_leave_the_threads_of_blas_asleep() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    threads, _, awake = ran.stdout.strip().partition(" ")
    if threads == "0":
        pytest.skip("BLAS has no threads of its own here")
    assert awake == "[]"
