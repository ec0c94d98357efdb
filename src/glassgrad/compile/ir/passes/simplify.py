"""Algebraic simplification: the table in `rules`, and identities of ops with parameters."""

from __future__ import annotations

from glassgrad.compile.ir.graph import Graph, Instr, Operand, Var
from glassgrad.compile.ir.passes.rewriter import Rewriter
from glassgrad.compile.ir.passes.rules import ALGEBRA, Rules, rule
from glassgrad.ops.axes import reduced_shape


def simplify(graph: Graph) -> Graph:
    """Apply rewrites to every instruction, operands first, until none fits."""
    return Rewriter(graph).rewrite(SIMPLIFY).finish()


def _keeps_axes(rewriter: Rewriter, instr: Instr) -> bool:
    axes = instr.params["axes"]
    return bool(axes == tuple(range(len(axes))))


def _joined(rewriter: Rewriter, instr: Instr, x: Operand, first: tuple[int, ...]) -> Operand:
    """Combine two permutations; the second may undo the first."""
    axes = tuple(first[axis] for axis in instr.params["axes"])
    return x if axes == tuple(range(len(axes))) else rewriter.apply("permute_dims", x, like=instr, axes=axes)


def _swapped(ndim: int) -> tuple[int, ...]:
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def _swapped_product(rewriter: Rewriter, instr: Instr, a: Operand, b: Operand) -> Operand | None:
    """Rewrite (a @ b).T as b.T @ a.T if a @ b has no other use."""
    product = instr.reads()[0]
    axes = instr.params["axes"]
    if rewriter.uses[product] != 1 or len(axes) < 2 or axes != _swapped(len(axes)):
        return None
    if not isinstance(a, Var) or not isinstance(b, Var) or min(a.ndim, b.ndim) < 2:
        return None
    turned = [rewriter.apply("permute_dims", x, like=instr, axes=_swapped(x.ndim)) for x in (b, a)]
    plain = [rewriter.simplest(x, SIMPLIFY) for x in turned]
    return rewriter.apply("matmul", *plain, like=rewriter.producer[product])


def _kept_reduction(rewriter: Rewriter, instr: Instr, x: Operand, axes: tuple[int, ...], kept: bool) -> Operand | None:
    """Merge a reshape that restores or drops reduced axes into the reduction's keepdims."""
    reduced = rewriter.producer[instr.reads()[0]]
    if rewriter.uses[reduced.output] > 1 or not isinstance(x, Var) or not axes:
        return None
    if instr.output.shape != reduced_shape(x, axis=axes, keepdims=not kept):
        return None
    return rewriter.apply(reduced.op, x, like=reduced, axis=axes, keepdims=not kept)


def _without_reducing(rewriter: Rewriter, instr: Instr, x: Operand) -> Operand | None:
    """Replace a reduction over axes of length 1 by a reshape."""
    if not isinstance(x, Var) or any(x.shape[axis] != 1 for axis in instr.params["axis"]):
        return None
    return rewriter.apply("reshape", x, like=instr, shape=instr.output.shape)


def _of_a_number(rewriter: Rewriter, instr: Instr) -> bool:
    reshaped = rewriter.producer[instr.reads()[0]].inputs[0]
    return getattr(reshaped, "shape", None) == ()


def _takes_everything(rewriter: Rewriter, instr: Instr) -> bool:
    return all(
        part is Ellipsis or (isinstance(part, tuple) and part == (None, None, None)) for part in instr.params["spec"]
    )


def _without_broadcasts(rewriter: Rewriter, instr: Instr, *operands: Operand) -> Operand | None:
    """Drop a broadcast_to before an elementwise op, which broadcasts itself, if the result keeps its shape."""
    for position, operand in enumerate(operands):
        behind = rewriter.behind(operand)
        if behind is None or behind.op != "broadcast_to":
            continue
        inputs = (*operands[:position], behind.inputs[0], *operands[position + 1 :])
        made = rewriter.apply(instr.op, *inputs, like=instr, **instr.params)
        if made.shape == instr.output.shape and made.dtype == instr.output.dtype:
            return made
    return None


_REDUCTIONS = ("sum", "max", "min")
SIMPLIFY = Rules(
    (
        *ALGEBRA,
        # ops that change neither shape nor dtype
        rule("reshape(x)", "x"),
        rule("broadcast_to(x)", "x"),
        rule("astype(x)", "x"),
        rule("getitem(x)", "x", _takes_everything),
        rule("permute_dims(x)", "x", _keeps_axes),
        # twice
        rule("reshape(reshape(x))", "reshape(x)"),
        rule("broadcast_to(broadcast_to(x))", "broadcast_to(x)"),
        rule("broadcast_to(reshape(x))", "broadcast_to(x)", _of_a_number),
        rule("permute_dims(permute_dims(x, axes=a))", _joined),
        rule("permute_dims(matmul(a, b))", _swapped_product),
        # signs
        rule("reshape(-x)", "-reshape(x)"),
        rule("sum(-x)", "-sum(x)"),
        # reductions
        *(rule(f"reshape({op}(x, axis=a, keepdims=b))", _kept_reduction) for op in _REDUCTIONS),
        *(rule(f"{op}(x)", _without_reducing) for op in _REDUCTIONS),
        rule("elementwise", _without_broadcasts),
    )
)
