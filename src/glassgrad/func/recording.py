"""One call of a function, recorded for a transform: the common part of `grad`, `vjp`, `jvp` and the others.

The inputs are replaced by fresh aliases, so that derivatives with respect to them are derivatives with respect
to certain nodes of the tape. Nested transforms need nothing more: each has its own nodes, so perturbations
cannot be confused.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tape, tree, views
from glassgrad.engine.mode import MODE, enable_grad, is_grad_enabled
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor, base_class, make
from glassgrad.engine.tree import Nested
from glassgrad.engine.walks.tangents import forward_walk
from glassgrad.ops.core import Array
from glassgrad.ops.shape import alias_p

Argnums = int | Sequence[int]


class Recording:
    """A function evaluated on aliases of its arguments.

    Attributes:
        inputs, in_trees: the aliases, flat, and the structures of the arguments they come from.
        outputs, out_tree: the results, flat, and their structure.
        aux: the auxiliary outputs.
        outer: whether an outer transform or backward may differentiate the results.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any] | None = None,
        *,
        argnums: Argnums | None = None,
        has_aux: bool = False,
    ) -> None:
        self.name = name
        self.recording = is_grad_enabled()
        self.single = isinstance(argnums, int)
        called = list(args)
        self.inputs: list[Tensor] = []
        self.in_trees: list[tree.Tree] = []
        for position in positions(name, argnums, len(called)):
            leaves, structure = tree.flatten(called[position])
            aliases = [alias_input(name, leaf, position) for leaf in leaves]
            called[position] = tree.unflatten(structure, aliases)
            self.inputs.extend(aliases)
            self.in_trees.append(structure)
        # Writes of the function to its arguments give them new nodes.
        self.nodes: list[Node] = [x.node for x in self.inputs if x.node is not None]  # aliases have one
        with enable_grad(), self._watching_writes() as written:
            result = function(*called, **(kwargs or {}))
        self.aux: Any = None
        if has_aux:
            result, self.aux = self._without_aux(result)
        self.outputs, self.out_tree = tree.flatten(result)
        self._check_outputs()
        aux_leaves = [leaf for leaf in tree.flatten(self.aux)[0] if isinstance(leaf, Tensor)]
        self.outer = self.recording and reaches_outside([*self.outputs, *aux_leaves], self.nodes)
        if written:
            self.outputs = [make(y.array, y.node, y.requires_grad) for y in self.outputs]
            self._release(written)

    @contextmanager
    def _watching_writes(self) -> Iterator[list[Any]]:
        """Collect the tensors that are written in the block."""
        before, MODE.moved = MODE.moved, []
        try:
            yield MODE.moved
        except BaseException:
            self._release(MODE.moved)
            raise
        finally:
            MODE.moved = before

    def _release(self, written: list[Any]) -> None:
        """Detach tensors that were written inside and outlive the call, unless an outer transform differentiates them.

        These are arguments of the caller, or tensors that the function closes over. Their memory has the new values, as
        after a plain call of the function. The history recorded only for this transform is no longer needed.
        """
        for x in {id(x): x for x in (reference() for reference in written) if x is not None}.values():
            if not (self.recording and reaches_outside([x], self.nodes)):
                x.node, x._tracks = None, False
            elif MODE.moved is not None:
                MODE.moved.append(weakref.ref(x))

    def _without_aux(self, result: Nested) -> tuple[Array, Array]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise errors.AUX_MISSING(name=self.name, given=type(result).__name__, where=provenance.here())
        return result

    def _check_outputs(self) -> None:
        for y in self.outputs:
            if not isinstance(y, Tensor):
                raise errors.OUTPUT_NOT_TENSOR(name=self.name, given=type(y).__name__, where=provenance.here())
            if y.dtype.kind not in "fV":
                raise errors.OUTPUT_DTYPE(name=self.name, dtype=y.dtype, where=provenance.here())

    # --- results for the caller --------------------------------------------------------------------

    def visible(self, value: Nested) -> Nested:
        """Return tensors of the result without the history that was recorded only for this transform."""
        return tree.tree_map(lambda y: y.detach() if isinstance(y, Tensor) and not self.outer else y, value)

    @property
    def result(self) -> Nested:
        """The result of the function."""
        return self.visible(tree.unflatten(self.out_tree, self.outputs))

    def like_inputs(self, leaves: Sequence[Array]) -> Nested:
        """Assemble one leaf per input into the argument's structure, or a tuple of them for several argnums."""
        supply = iter(leaves)
        parts = tuple(tree.unflatten(structure, supply) for structure in self.in_trees)
        return parts[0] if self.single else parts

    # --- derivatives --------------------------------------------------------------------------------

    def pull(self, cotangents: Sequence[Tensor | None], *, keep: bool = True) -> list[Tensor]:
        """Map cotangents of the outputs to cotangents of the inputs.

        `keep` retains the graph for another pull.
        """
        create_graph = self.wanted_again(cotangents)
        pairs = [
            (place(y), g if create_graph else g.lifted())
            for y, g in zip(self.outputs, cotangents, strict=True)
            if g is not None and y.requires_grad
        ]
        found = tape.backward(
            [root for root, _ in pairs],
            [g for _, g in pairs],
            retain_graph=keep or create_graph,
            create_graph=create_graph,
            wanted=self.nodes,
        )
        pairs_in = zip(self.inputs, self.nodes, strict=True)
        return [tape.wrap(found[node]) if node in found else zeros(x) for x, node in pairs_in]

    def push(self, tangents: Sequence[Tensor | None], *, differentiable: bool = False) -> list[Tensor]:
        """Map tangents of the inputs to tangents of the outputs."""
        create_graph = differentiable or self.wanted_again(tangents)
        seeds = {
            node: t if create_graph else t.lifted()
            for node, t in zip(self.nodes, tangents, strict=True)
            if t is not None
        }
        found = forward_walk([place(y) for y in self.outputs], seeds, create_graph=create_graph)
        return [zeros(y) if t is None else tape.wrap(t) for y, t in zip(self.outputs, found, strict=True)]

    def wanted_again(self, given: Iterable[Tensor | None]) -> bool:
        """Tell whether an outer transform or backward may differentiate results computed from `given`."""
        return is_grad_enabled() and (self.outer or any(t is not None and t.requires_grad for t in given))


def place(x: Tensor) -> Any:
    """Return a tensor's representative on the tape: its node, or the tensor itself if it is a leaf."""
    return x if x.node is None else x.node


def zeros(like: Nested) -> Tensor:
    """Return zeros of the same shape and dtype."""
    return make(np.zeros(like.shape, like.dtype), None, False)


def reaches_outside(outputs: Sequence[Tensor], own: Sequence[Node]) -> bool:
    """Return whether the history of `outputs` leads to anything differentiable other than the aliases in `own`.

    Aliases of enclosing transforms are older than those in `own`; younger ones are left from transforms that ended
    inside.
    """
    began = min((node.seq for node in own), default=0)
    seen: set[Node] = set()
    stack = [place(y) for y in outputs if y.requires_grad]
    while stack:
        target = stack.pop()
        if type(target) is not Node:
            return True  # a leaf
        if target in seen:
            continue
        seen.add(target)
        parents = [parent for parent in target.parents if parent is not None]
        if not parents and target.seq < began:
            return True  # the alias of another transform
        stack.extend(parents)
    return False


# --- inputs -----------------------------------------------------------------------------------------


def positions(name: str, argnums: Argnums | None, count: int) -> list[int]:
    """Return the positions that `argnums` selects; None selects all."""
    if argnums is None:
        return list(range(count))
    chosen = [argnums] if isinstance(argnums, int) else list(argnums)
    found = []
    for number in chosen:
        if not -count <= number < count or number % count in found:
            raise errors.ARGNUMS(name=name, given=argnums, count=count, where=provenance.here())
        found.append(number % count)
    return found


def alias_input(name: str, leaf: Array, position: int) -> Tensor:
    """Return an alias of an input to differentiate; writes to it reach the original."""
    x = as_float_tensor(name, leaf, f"argument {position}")
    alias: Tensor = views.bind(tape.alias(x), x, alias_p, {})
    return alias


def as_float_tensor(name: str, leaf: Array, what: str) -> Tensor:
    """Convert a tensor, an array or a float to a tensor; raise for anything else."""
    if isinstance(leaf, float):
        leaf = np.asarray(leaf, np.float32)
    if isinstance(leaf, np.ndarray | np.generic):
        leaf = make(np.asarray(base_class(leaf)), None, False)
    if isinstance(leaf, int | complex):
        leaf = make(np.asarray(leaf), None, False)
    if not isinstance(leaf, Tensor):
        raise errors.INPUT_NOT_TENSOR(name=name, what=what, given=type(leaf).__name__, where=provenance.here())
    if leaf.dtype.kind == "c":
        raise errors.COMPLEX_INPUT(name=name, what=what, dtype=leaf.dtype, where=provenance.here())
    if leaf.dtype.kind not in "fV":
        raise errors.INTEGER_INPUT(name=name, what=what, dtype=leaf.dtype, where=provenance.here())
    return leaf


def matching(name: str, what: str, given: Nested, structure: tree.Tree, like: Sequence[Tensor]) -> list[Tensor]:
    """Return the leaves of cotangents or tangents, which must have the structure, shapes and dtypes of `like`."""
    leaves = tree.flatten_like(structure, given, f"{name}: {what}")
    tensors = []
    for leaf, x in zip(leaves, like, strict=True):
        t = leaf if isinstance(leaf, Tensor) else make(np.asarray(leaf, x.dtype), None, False)
        if t.shape != x.shape:
            raise errors.DIRECTION_SHAPE(name=name, what=what, given=t.shape, expected=x.shape, where=provenance.here())
        tensors.append(t if t.dtype == x.dtype else t.astype(x.dtype))
    return tensors
