"""`explain`: the derivative of a function at a point as a worked example, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassgrad.errors.missing import lister, missing
from glassgrad.explanation import render
from glassgrad.explanation.record import Edge, Input, Record, Step, record
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from glassgrad.explanation.drawing import draw

__all__ = ["Edge", "Explanation", "Input", "Record", "Step", "draw", "explain"]
__dir__ = lister(__name__)


def __getattr__(name: str) -> Any:
    """Load `draw` on first use: whoever replays or explains ops needs neither pictures nor the compiler."""
    if name != "draw":
        raise missing(__name__, name, __all__)
    from glassgrad.explanation.drawing import draw

    return draw


class Explanation:
    """The result of `explain`: it prints as text, shows tables in a notebook, and holds plain data in `record`.

    Example:
        >>> import glassgrad as gg
        >>> found = gg.explain(lambda x: (x * x).exp(), 1.0)
        >>> found.record.steps[0].op, round(float(found.record.inputs[0].gradient), 4)
        ('multiply', 5.4366)
    """

    def __init__(self, data: Record, page: Callable[[], str]) -> None:
        self.record = data
        self.page = page
        """Return the graph, the program and the tables as one HTML page."""

    @property
    def steps(self) -> list[Step]:
        return self.record.steps

    @property
    def gradients(self) -> dict[str, Array]:
        """The gradient of every input, by name."""
        return {entry.name: entry.gradient for entry in self.record.inputs}

    def __str__(self) -> str:
        return render.as_text(self.record)

    def __repr__(self) -> str:
        return str(self)

    def markdown(self) -> str:
        """Return the tables in Markdown."""
        return render.as_markdown(self.record)

    def latex(self) -> str:
        """Return the steps in LaTeX (for a document with amsmath)."""
        return render.as_latex(self.record)

    def html(self) -> str:
        """Return the tables in HTML, as a notebook shows them."""
        return render.as_html(self.record)

    _repr_html_ = html

    def show(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Open the page of the call in a browser or in the calling notebook; with a path, write it there instead."""
        from glassgrad.compile.showing import shown

        return shown(self.page(), self.record.function, path)


def explain(function: Callable[..., Any], *args: Array, **options: Any) -> Explanation:
    """Explain the derivative of `function` at the given arguments.

    The derivative is taken with respect to the numbers, floating-point arrays and Tensors among the arguments and the
    parameters of modules among them, or with respect to Values of `glassgrad.scalar`. The result must be one number.
    Every op is a step: its formula, its value (or shape), the user's line, and in the backward pass its cotangent, the
    local derivative for each argument and the term that it adds to the argument's gradient.

    Args:
        function: the function; it returns one number, a scalar tensor or a Value.
        args, options: its arguments: numbers, arrays, tensors and modules.

    Returns:
        An `Explanation`, which prints itself and shows itself in a notebook.

    Example:
        >>> def f(x, w, b):
        ...     return (x * w + b) ** 2
        >>> explanation = explain(f, 2.0, -3.0, 1.0)
        >>> [f"{step.name} = {step.expression} = {step.value:g}" for step in explanation.steps]
        ['v1 = x * w = -6', 'v2 = v1 + b = -5', 'f = v2 ** 2 = 25']
        >>> {name: float(gradient) for name, gradient in explanation.gradients.items()}
        {'x': 30.0, 'w': -20.0, 'b': -10.0}
    """
    from glassgrad.verify.scalars import has_values

    if has_values(function, [*args, *options.values()]):
        from glassgrad.explanation.values import record_of_values

        data = record_of_values(function, args, options)
        return Explanation(data, lambda: render.as_html(data))

    def page() -> str:
        from glassgrad.explanation.page import page_of

        return page_of(function, args, options)

    return Explanation(record(function, args, options), page)
