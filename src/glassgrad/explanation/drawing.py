"""`draw`: the graph of a tensor, a function, a module or a compiled step as a picture."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.base.drawing import Drawing, Graph
from glassgrad.base.drawing.graph import Path
from glassgrad.base.drawing.scene import paths_of
from glassgrad.compile.api import Compiled
from glassgrad.compile.source.torch_fx import is_foreign
from glassgrad.engine.scope import Scope
from glassgrad.engine.tensor import Tensor
from glassgrad.explanation.graphs import graph_of, of_call, of_tensor, sweeps_of
from glassgrad.explanation.neurons import graph_of_neurons
from glassgrad.explanation.step_graph import graph_of_step
from glassgrad.ops.core import Array

if TYPE_CHECKING:
    from glassgrad.scalar import Value

VIEWS = ("ops", "layers", "neurons", "sweeps")
_READABLE = 60
"""The largest number of visible boxes up to which modules are opened."""


def draw(
    what: Tensor | Value | Callable[..., Any],
    *inputs: Array,
    view: str = "ops",
    depth: int | None = None,
    opened: Collection[str] = (),
    max_nodes: int = 500,
    **options: Any,
) -> Drawing:
    """Draw the graph of a computation, with values, gradients and local derivatives.

    Boxes are ops, with the user's variable, the shape, the value (the norm, for more than four numbers) and the
    gradient. Each edge ends with its local derivative. Hovering over a box shows the formula, statistics and the user's
    line. In the page (`.html`, and in notebooks) a click on a module opens or closes it.

    Args:
        what: a tensor or a `scalar.Value` with a history; or a function or module, which is called with `inputs` (its
            tensors, modules, optimizers and random state are restored afterwards); or a compiled function that was
            called before, whose program is drawn.
        inputs, options: arguments; numbers and arrays of floats get gradients.
        view: "ops"; "layers", with modules closed; "neurons", a network of linear layers number by number; or "sweeps",
            the forward-mode pass from each input beside the one reverse-mode pass.
        depth: how many levels of modules are open; None opens as many as stay readable.
        opened: further modules to open, by name, such as "blocks.0.attention".
        max_nodes: the largest number of boxes; more raise an error.

    Returns:
        The drawing: `.svg`, `.html` and `.json` are text, `.save(path)` writes one of them, `.graph` is the data.

    Raises:
        ArgumentError: there is nothing to draw, or too much.

    Example:
        >>> import glassgrad as gg
        >>> x = gg.tensor(2.0, requires_grad=True)
        >>> w = gg.tensor(-3.0, requires_grad=True)
        >>> loss = (x * w + 1) ** 2
        >>> picture = gg.draw(loss)
        >>> picture
        <drawing of loss: 7 values; .save('graph.svg') or .html, .json>
        >>> [(node.name, node.value.text, node.gradient.text) for node in picture.graph.nodes if node.gradient]
        [('x', '2', '30'), ('w', '-3', '-20'), ('v1', '-6', '-10'), ('v2', '-5', '-10'), ('loss', '25', '1')]
    """
    if view not in VIEWS:
        raise errors.DRAW_VIEW(given=view, known=", ".join(VIEWS))
    from glassgrad import scalar

    called: Any = what
    if callable(called) and (isinstance(called, scalar.Module) or _has_values(inputs)):
        return _of_values(called, inputs, max_nodes, view)
    if isinstance(what, scalar.Value):
        return scalar.draw(what, max_nodes, view)
    graph = _graph(what, inputs, options, view)
    if graph.columns:
        return Drawing(graph)
    paths = paths_of(graph)
    chosen = _by_name(paths, opened)
    if view == "layers":
        depth = 0 if depth is None else depth
    shown = {path for path in paths if len(path) <= depth} if depth is not None else _readable(graph, paths)
    shown |= chosen
    count = _count(graph, shown)
    if count > max_nodes:
        raise errors.DRAW_TOO_MANY(name=graph.name, count=count, limit=max_nodes, next=_next(paths, count))
    return Drawing(graph, shown)


def _of_values(called: Any, inputs: Sequence[Array], max_nodes: int, view: str) -> Drawing:
    """Draw the result of a function or a network on Values; the network need not be a variable of the caller."""
    from glassgrad import scalar
    from glassgrad.scalar.drawing import drawn

    result = called(*inputs)
    if not isinstance(result, scalar.Value):
        raise errors.SCALAR_RESULT(owner="draw", given=type(result).__name__)
    frame = provenance.user_frame(2)
    given = {type(called).__name__.lower(): called} if isinstance(called, scalar.Module) else {}
    return drawn(result, max_nodes, view, {**given, **frame.f_globals, **frame.f_locals})


def _has_values(inputs: Array) -> bool:
    """Tell whether there are Values of the scalar engine among the inputs, or in lists of them."""
    from glassgrad import scalar

    return any(isinstance(x, scalar.Value) or (isinstance(x, list | tuple) and _has_values(x)) for x in inputs)


def _graph(what: Any, inputs: Sequence[Array], options: dict[str, Any], view: str) -> Graph:
    if isinstance(what, Compiled) and not inputs and not options:
        if view not in {"ops", "layers"}:
            raise errors.DRAW_VIEW_OF_STEP(view=view)
        return graph_of_step(getattr(what, "__name__", "step"), what.graph)
    if isinstance(what, Tensor):
        if view == "sweeps":
            raise errors.DRAW_SWEEPS(shape=list(what.shape))
        ops = of_tensor(what, Scope.of_frame(provenance.user_frame(2)))
        return graph_of_neurons(ops) if view == "neurons" else graph_of(ops)
    if not callable(what) or is_foreign(what):
        kind = type(what)
        raise errors.DRAW_KIND(given=f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))
    function = getattr(what, "__compiled_function__", what)
    ops, call = of_call(function, inputs, options)
    if view == "neurons":
        return graph_of_neurons(ops)
    graph = graph_of(ops)
    if view == "sweeps":
        graph.sweeps = sweeps_of(call, ops, graph)
    return graph


def _by_name(paths: Sequence[Path], wanted: Collection[str]) -> set[Path]:
    """Return the paths of modules given by name, with the modules that contain them."""
    names = {".".join(path): path for path in paths}
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, names, 5, 0.3) or list(names)[:5]
            raise errors.DRAW_NO_MODULE(given=name, known=", ".join(near) or "none: it has no modules")
    return {names[name][:length] for name in wanted for length in range(1, len(names[name]) + 1)}


def _readable(graph: Graph, paths: Sequence[Path]) -> set[Path]:
    """Return the modules of as many levels as keep the picture readable."""
    shown: set[Path] = set()
    for depth in sorted({len(path) for path in paths}):
        wider = {path for path in paths if len(path) <= depth}
        if _count(graph, wider) > _READABLE:
            break
        shown = wider
    return shown


def _count(graph: Graph, shown: set[Path]) -> int:
    """Count the visible boxes."""
    seen = set()
    for at, node in enumerate(graph.nodes):
        shut = next(
            (node.module[:length] for length in range(1, len(node.module) + 1) if node.module[:length] not in shown),
            None,
        )
        seen.add(at if shut is None else shut)
    return len(seen)


def _next(paths: Sequence[Path], count: int) -> str:
    if paths:
        return "use view='layers' or depth=0, which closes the modules"
    return (
        "give the function or the module and its inputs instead of the tensor, which groups the ops by module; "
        f"or max_nodes={count}"
    )
