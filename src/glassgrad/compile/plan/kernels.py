"""Turn a graph into kernels: decide which views are read through, which ops are fused, and which values are stored.

A `Kernel` is one unit of execution: a loop nest, or one *solid* instruction (a matrix product, a scatter, a call
of the host). The Vars with memory follow from the grouping: those that another kernel reads and those that must
exist when the program ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.build_nest import build_nest
from glassgrad.compile.plan.fusion import Fusion, Group, fuse, same_point
from glassgrad.compile.plan.indexing.indices import Index, NeedsSplit, NotAffine
from glassgrad.compile.plan.nests import Access, Expressions, Nest, Store
from glassgrad.compile.plan.target import Target
from glassgrad.compile.plan.view_chains import Strided, ViewChain, only_moves


@dataclass(eq=False)
class Kernel:
    """One unit of work.

    Attributes:
        instrs: the instructions it performs.
        nest: the loops, for a loop kernel.
        operands: the memory layout of each operand of a solid instruction; None for numbers.
        reads, writes: the Vars in memory that it accesses.
    """

    instrs: list[Instr]
    nest: Nest | None = None
    operands: list[Strided | None] = field(default_factory=list)
    reads: set[Var] = field(default_factory=set)
    writes: set[Var] = field(default_factory=set)

    @property
    def name(self) -> str:
        ops = [instr.op for instr in self.instrs]
        return ops[0] if len(ops) == 1 else "+".join(ops)


@dataclass(eq=False)
class Plan:
    """The kernels of a graph in a possible execution order."""

    graph: Graph
    kernels: list[Kernel]
    fusion: Fusion


def make_plan(graph: Graph, target: Target) -> Plan:
    """Plan a graph whose ops are all lowerable."""
    limits = _Limits(choose_views(graph, target))
    keep = set(graph.results())
    hosts = {instr for instr in graph.instrs if target.is_host(instr)}
    while True:
        fusion, groups = fuse(graph, target.loops, limits.views, hosts, limits.alone)
        inlined = _recomputed(fusion, groups, keep) - limits.stored
        kernels: list[Kernel] = []
        for group in groups:
            try:
                kernel = _kernel(fusion, group, target, inlined, keep)
            except NotAffine:
                limits.tighten(fusion, group, inlined)
                break
            if kernel is not None:
                kernels.append(kernel)
        else:
            return Plan(graph, kernels, fusion)


@dataclass
class _Limits:
    """The restrictions of a plan, for reads that loops cannot express.

    Loops may be able to read each of two views but not both: one needs a loop of 6 iterations as 2 by 3, the other as
    3 by 2. Every `tighten` adds one of finitely many restrictions, so planning terminates.

    Attributes:
        views: the views that may be read through.
        stored: values that readers must not recompute.
        alone: instructions that must not share a nest.
    """

    views: set[Instr]
    stored: set[Var] = field(default_factory=set)
    alone: set[Instr] = field(default_factory=set)

    def tighten(self, fusion: Fusion, group: Group, inlined: set[Var]) -> None:
        """Forbid the cause of the failure of a group's nest; called while the `NotAffine` is handled."""
        failed = fusion.chain.failed
        if failed is not None:
            base, below = fusion.base(failed.output), fusion.chain.step(failed.reads()[0])
            if base in inlined:
                self.stored.add(base)
                return
            if below is not None:
                self.views.discard(below[0])
                return
        if not self.alone.issuperset(group.members):
            self.alone.update(group.members)
            return
        steps = [fusion.chain.step(operand) for operand in group.members[0].reads()]
        if not any(steps):
            raise  # noqa: PLE0704 - the caller handles it
        self.views.difference_update(step[0] for step in steps if step is not None)


# --- views --------------------------------------------------------------------------------------


def choose_views(graph: Graph, target: Target) -> set[Instr]:
    """Return the view instructions that are read through; the others become copies."""
    views = {instr for instr in graph.instrs if only_moves(instr) and not target.is_host(instr)}
    chain = ViewChain(views, graph.producers())
    for var in graph.results():
        maker = chain.producer.get(var)
        if maker is not None:
            views.discard(maker)
    for instr in graph.instrs:
        _until_affine(chain, instr)
    for instr in graph.instrs:
        if instr in views:
            continue
        for position, operand in enumerate(instr.inputs):
            if isinstance(operand, Var) and not _fits(chain, instr, position, operand, target):
                views.discard(_to_store(chain, instr, position, target))
    return views


def _to_store(chain: ViewChain, instr: Instr, position: int, target: Target) -> Instr:
    """Return the view behind an operand to materialise, so that the rest of the chain can be read through.

    Choose the smallest one; among equals the one nearest to the base, which other readers most likely share.
    """
    operand = instr.inputs[position]
    assert isinstance(operand, Var)
    best, var = chain.producer[operand], operand
    while (step := chain.step(var)) is not None:
        chain.views.discard(step[0])
        fits = _fits(chain, instr, position, operand, target)
        chain.views.add(step[0])
        if fits and step[0].output.size <= best.output.size:
            best = step[0]
        var = step[1]
    return best


def _until_affine(chain: ViewChain, instr: Instr) -> None:
    """Materialise sources of reshapes until affine indices can express the view."""
    while instr in chain.views and not chain.is_affine(instr.output):
        assert chain.failed is not None
        found = chain.step(chain.failed.output)
        inner = chain.step(found[1]) if found is not None else None
        chain.views.discard(instr if inner is None else inner[0])


def _fits(chain: ViewChain, instr: Instr, position: int, operand: Var, target: Target) -> bool:
    """Tell whether an operand can be read without a copy."""
    if chain.step(operand) is None:
        return True
    loop = None if target.is_host(instr) else target.loops.get(instr.op)
    if loop is None:
        found = chain.strided(operand)
        return found is not None and target.accepts(instr, position, found)
    if loop.reduces:
        return True
    extents = dict(enumerate(instr.output.shape))
    sample = tuple(Index(0, ((axis, 1),)) if extent != 1 else Index() for axis, extent in extents.items())
    try:
        return loop.reads(instr, position, sample, extents) is not None or chain.in_order(operand)
    except NeedsSplit:
        return True
    except NotAffine:
        return chain.in_order(operand)


# Values of at least this many elements are recomputed by their readers ...
_MANY = 1 << 14
# ... if that takes only one of these ops.
_CHEAP = frozenset({"add", "subtract", "multiply"})


def _recomputed(fusion: Fusion, groups: list[Group], keep: set[Var]) -> set[Var]:
    """Return large values that every reader recomputes, in one operation from values that are in memory anyway.

    A layer norm keeps its centred input and the scale of each row, so the normalised input need not be kept.
    """
    stored = {
        instr.output
        for group in groups
        if not group.solid
        for instr in group.members
        if _is_stored(fusion, group, instr, keep, set())
    }
    found: set[Var] = set()
    needed = set(keep)
    for var in sorted(stored, key=lambda var: var.id):
        instr = fusion.producer[var]
        operands = [part for part in instr.inputs if isinstance(part, Var) and part in stored and part not in found]
        cheap = var.size >= _MANY and instr.op in _CHEAP and len(operands) == 2
        small = any(part.size * 16 <= var.size for part in operands)
        if cheap and small and var not in needed and _read_in_place(fusion, var):
            found.add(var)
            needed.update(operands)
    return found


def _read_in_place(fusion: Fusion, var: Var) -> bool:
    """Tell whether all readers of a value read it element by element, so that it need not be in memory."""
    for user in fusion.users.get(var, ()):
        loop = fusion.table.get(user.op)
        if fusion.group_of[user].solid or loop is None or not (loop.reduces or loop.reads is same_point):
            return False
    return True


# --- kernels --------------------------------------------------------------------------------------


def _kernel(fusion: Fusion, group: Group, target: Target, inlined: set[Var], keep: set[Var]) -> Kernel | None:
    if group.solid:
        instr = group.members[0]
        return _solid_kernel(fusion, instr) if any(out.size for out in instr.outputs) else None
    stored = [instr.output for instr in group.members if _is_stored(fusion, group, instr, keep, inlined)]
    if not any(var.size for var in stored):
        return None
    nest = build_nest(fusion, group, stored, target.loops, target.kind_of, inlined, target.costs)
    reads = {access.root for access, is_store in nest.accesses() if not is_store}
    reads.update(fusion.base(token) for instr in group.members for token in fusion.tokens[instr])
    return Kernel(list(group.members), nest, reads=reads, writes=set(stored))


def _is_stored(fusion: Fusion, group: Group, instr: Instr, keep: set[Var], inlined: set[Var]) -> bool:
    var = instr.output
    if var in keep:
        return True
    if var in inlined:
        return False
    return any(fusion.group_of[user] is not group for user in fusion.users.get(var, ()))


def _solid_kernel(fusion: Fusion, instr: Instr) -> Kernel:
    operands = [fusion.chain.strided(operand) if isinstance(operand, Var) else None for operand in instr.inputs]
    reads = {operand.root for operand in operands if operand is not None}
    reads.update(map(fusion.base, fusion.tokens[instr]))
    return Kernel([instr], None, operands, reads, set(instr.outputs))


def copy_kernel(source: Var, target: Var, kind: str) -> Kernel:
    """Return a kernel that copies one array into the memory of another."""
    axis = 0
    index = Index(0, ((axis, 1),)) if source.size != 1 else Index()
    extents = {axis: source.size} if source.size != 1 else {}
    value = Expressions({}).load(source, index, kind)
    nest = Nest(extents, list(extents), [], [Store(value, Access(target, index))], [], "copy", ["copy"])
    instr = Instr("copy", (source,), (target,))
    return Kernel([instr], nest, reads={source}, writes={target})
