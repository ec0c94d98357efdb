"""Trainings with a `Trainer` in a user's style: `mpirun -n 2 python trained.py CASE,CASE FOLDER [STEPS]`."""

from __future__ import annotations

import sys

import numpy as np

import glassgrad as gg
import glassgrad.distributed as dist
from glassgrad import nn, optim
from glassgrad.nn import functional as F
from glassgrad.train import Trainer, TrainingConfig
from glassgrad.utils.data import DataLoader, TensorDataset

# 52 examples in batches of 10 leave a last batch of two, which is less than one for each of four ranks.
CASES = {
    "compiled": {"engine": "compiled"},
    "plain": {},
    "single": {"dtype": "float32"},
    "clipped": {"clip_norm": 0.1, "norms": True, "engine": "compiled"},
    "accumulated": {"accumulate": 3},
    "normed": {},
    "averaged": {"ema": 0.9, "skip_nonfinite": True},
    "spread": {"engine": "compiled"},
}


def main(case: str, folder: str, until: int | None = None) -> None:
    gg.manual_seed(3)
    kind = gg.float32 if case == "single" else gg.float64
    x = gg.randn(52, 5, dtype=kind)
    data = TensorDataset(x, (x[:, :3] * 2).argmax(1))
    # No bias before a norm: its gradient is zero but for rounding, of which Adam makes whole steps.
    norm = [nn.BatchNorm1d(8)] if case == "normed" else []
    model = nn.Sequential(nn.Linear(5, 8, bias=not norm), *norm, nn.Tanh(), nn.Linear(8, 3)).to(kind)
    options = {"engine": "eager", "epochs": 3, "progress": "none", "log_every": 1, "save_every": 1e-9, **CASES[case]}
    config = TrainingConfig(run_dir=f"{folder}/{case}", **options)
    loader = DataLoader(data, batch_size=10, shuffle=True, drop_last=case == "normed")
    if case == "spread":
        if not dist.is_initialized():
            dist.init_process_group()
        optimizer = optim.ZeroRedundancyOptimizer(model.parameters(), optim.AdamW, lr=0.05)
    else:
        optimizer = optim.AdamW(model.parameters(), lr=0.05)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
    trainer = Trainer(model, optimizer, F.cross_entropy, loader, loader, scheduler, config)
    result = trainer.fit(resume=True, until=until)
    weights = np.concatenate([np.asarray(p.detach().numpy(), np.float64).ravel() for p in model.parameters()])
    numbers = [result.loss, result.measures.get("loss", 0.0), *weights]
    print(case, result.step, *(f"{number:.17g}" for number in numbers), flush=True)


if __name__ == "__main__":
    for one in sys.argv[1].split(","):
        main(one, sys.argv[2], *map(int, sys.argv[3:]))
