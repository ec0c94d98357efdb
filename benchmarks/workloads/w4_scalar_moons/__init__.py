"""W4: the scalar engine on two moons. Every number is an object of its own; micrograd's classic demonstration."""

from __future__ import annotations

from benchmarks.workload import Bar, Workload

WORKLOAD = Workload(
    key="w4",
    title="W4: scalar engine, moons MLP 2-16-16-1, 100 points",
    package=__name__,
    peers={
        "micrograd": "scalar_peer:micrograd",
        "glassgrad.scalar": "scalar_peer:glassgrad",
        "glassgrad.scalar compiled": "compiled_peer",
    },
    reference="micrograd",
    bars=(Bar("glassgrad.scalar", ("micrograd",), 0.6), Bar("glassgrad.scalar compiled", ("micrograd",), 0.01)),
    check_steps=5,
    tolerance=1e-9,
    seconds=1.5,
)
