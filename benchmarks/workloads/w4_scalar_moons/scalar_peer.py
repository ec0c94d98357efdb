"""W4 for micrograd and for glassgrad.scalar: one program, the mode says whose `Value` and `MLP` it uses."""

from __future__ import annotations

import importlib

from benchmarks.workloads.w4_scalar_moons.problem import PENALTY, RATE, WIDTHS, initial, points

ENGINES = {"micrograd": ("micrograd.engine", "micrograd.nn"), "glassgrad": ("glassgrad.scalar", "glassgrad.scalar")}


def build(mode):
    engine, layers = (importlib.import_module(name) for name in ENGINES[mode])
    model = layers.MLP(WIDTHS[0], list(WIDTHS[1:]))
    parameters = model.parameters()
    for parameter, value in zip(parameters, initial(), strict=True):
        parameter.data = value
    rows, labels = points()

    def step():
        inputs = [[engine.Value(coordinate) for coordinate in row] for row in rows]
        scores = [model(row) for row in inputs]
        hinges = [(1 + -label * score).relu() for label, score in zip(labels, scores, strict=True)]
        loss = sum(hinges) * (1.0 / len(hinges)) + PENALTY * sum(parameter * parameter for parameter in parameters)
        model.zero_grad()
        loss.backward()
        for parameter in parameters:
            parameter.data -= RATE * parameter.grad
        return loss.data

    def run(count):
        loss = float("nan")
        for _ in range(count):
            loss = step()
        return loss

    return run
