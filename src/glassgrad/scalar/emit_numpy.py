"""A traced program as NumPy source: one array over the batch per varying step, a float per other step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from glassgrad.scalar.program import Program
from glassgrad.scalar.rules import RULES

_COMPARE = {"lt": "<", "gt": ">", "eq": "=="}
HEADER = "def program(columns, leaves, seeds):"


class _Text:
    """A piece of source that represents a number."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: _Text) -> _Text:
        return _Text(f"({self} + {other})")

    def __sub__(self, other: _Text) -> _Text:
        return _Text(f"({self} - {other})")

    def __mul__(self, other: _Text) -> _Text:
        return _Text(f"{self} * {other}")

    def __truediv__(self, other: _Text) -> _Text:
        return _Text(f"{self} / ({other})")

    def __neg__(self) -> _Text:
        return _Text(f"(-{self})")


class _Functions:
    """The `m` of the rules: functions that have no operator."""

    def __getattr__(self, name: str) -> Callable[..., _Text]:
        numpy_name = {"pow": "power"}.get(name, name)
        return lambda *args: _Text(f"np.{numpy_name}({', '.join(map(str, args))})")

    def constant(self, number: float) -> _Text:
        text = {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}.get(repr(number), repr(number))
        return _Text(f"({text})" if text.startswith("-") else text)

    def fma(self, a: _Text, b: _Text, c: _Text) -> _Text:
        return _Text(f"{c} + {a} * {b}")

    def where(self, compare: str, a: _Text, b: _Text, x: _Text, y: _Text) -> _Text:
        return _Text(f"np.where({a} {_COMPARE[compare]} {b}, {x}, {y})")


def source_of(program: Program) -> str:
    """Return the source of `program(columns, leaves, seeds)`, which returns (result, gradients of the leaves)."""
    m = _Functions()
    steps = program.instructions
    names = [m.constant(step.number) if step.op == "constant" else _Text(f"v{i}") for i, step in enumerate(steps)]
    out = [HEADER]
    for i, step in enumerate(steps):
        if step.op in {"input", "leaf"}:
            out.append(f"    v{i} = {'columns' if step.op == 'input' else 'leaves'}[{int(step.number)}]")
        elif step.op != "constant":
            value = RULES[step.op].forward(m, step.number, *(names[arg] for arg in step.args))
            out.append(f"    v{i} = {value}")
    out += [
        f"    result = np.broadcast_to({names[-1]}, seeds.shape)",
        "    if not seeds.any():  # only the result is wanted",
    ]
    out += ["        return result, []", *_backward(program, names, m)]
    leaves = [i for i, step in enumerate(steps) if step.op == "leaf"]
    return "\n".join([*out, f"    return result, [{', '.join(f'd{i}' for i in leaves)}]", ""])


def _backward(program: Program, names: list[_Text], m: _Functions) -> list[str]:
    steps, out = program.instructions, []
    last = len(steps) - 1
    if steps[last].active:
        out.append(f"    d{last} = {'seeds' if steps[last].varying else 'seeds.sum()'}")
    started = {last}
    for i in range(last, -1, -1):
        step = steps[i]
        args = tuple(names[arg] for arg in step.args)
        for index, arg in enumerate(step.args):
            if not (step.active and steps[arg].active):
                continue
            share = str(RULES[step.op].pull(m, index, _Text(f"d{i}"), names[i], step.number, args))
            if step.varying and not steps[arg].varying:  # one leaf affects every sample
                share = f"np.sum({share})"
            out.append(f"    d{arg} = {f'd{arg} + ' if arg in started else ''}{share}")
            started.add(arg)
    return out


def build(program: Program) -> tuple[Callable[..., Any], str]:
    """Return the callable and its source."""
    source = source_of(program)
    names: dict[str, Any] = {"np": np}
    exec(compile(source, "<glassgrad.scalar.compile>", "exec"), names)  # noqa: S102 - text written above
    run = names["program"]

    def quiet(columns: Any, leaves: Any, seeds: Any) -> Any:
        with np.errstate(all="ignore"):  # without warnings, like a Value
            return run(columns, leaves.tolist(), seeds)

    return quiet, source
