"""W4 with the hinge loss of one point compiled by `scalar.compile` and called with all points at once."""

from __future__ import annotations

from benchmarks.workloads.w4_scalar_moons.problem import PENALTY, RATE, WIDTHS, initial, points
from glassgrad import scalar


def build(_mode):
    model = scalar.MLP(WIDTHS[0], list(WIDTHS[1:]))
    parameters = model.parameters()
    for parameter, value in zip(parameters, initial(), strict=True):
        parameter.data = value
    rows, labels = points()
    hinge = scalar.compile(lambda row, label: (1 - label * model(row)).relu())

    def step():
        model.zero_grad()
        loss = hinge.backward(rows, labels)
        # The penalty is the same for every point, so it stays outside of what runs once a point.
        loss += PENALTY * sum(parameter.data * parameter.data for parameter in parameters)
        for parameter in parameters:
            parameter.data -= RATE * (parameter.grad + 2 * PENALTY * parameter.data)
        return loss

    def run(count):
        loss = float("nan")
        for _ in range(count):
            loss = step()
        return float(loss)

    return run
