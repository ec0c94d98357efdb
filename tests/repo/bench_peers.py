"""Peers for the tests of the harness: gradient descent on x², in good and bad versions, one per mode."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

import glassgrad

RATES = {"good": 0.1, "stores": 0.1, "twin": 0.1, "wrong": 0.11, "slow": 0.1, "nan": 0.1, "dies": 0.1, "breaks": 0.1}


def build(mode):
    if mode == "missing":
        raise ModuleNotFoundError("No module named 'torch.nothing'", name="torch.nothing")
    if mode == "ours":
        raise ModuleNotFoundError("No module named 'glassgrad.nothing'", name="glassgrad.nothing")
    if mode == "unwritten":
        glassgrad.no_such_part  # noqa: B018 -- the attribute error is the point
    x = 3.0
    done = 0

    def run(count):
        nonlocal x, done
        for _ in range(count):
            done += 1
            if mode == "stores":
                compile_once()
            if mode == "slow":
                time.sleep(0.002)
            if mode == "dies":
                os._exit(3)
            if mode == "breaks" and done > 5:
                raise ValueError("broke while it was timed")
            x -= RATES[mode] * 2 * x
        print("a peer may print what it likes")
        return math.nan if mode == "nan" else x * x

    run.stores = mode == "stores"
    return run


def compile_once():
    """Take a while, unless a process before this one did."""
    done = Path(os.environ["GLASSGRAD_CACHE_DIR"]) / "done"
    if not done.exists():
        done.parent.mkdir()
        time.sleep(0.3)
        done.touch()
