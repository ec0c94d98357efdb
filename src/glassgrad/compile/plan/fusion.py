"""Fusion: decide which instructions share a loop nest.

Every elementwise instruction and every reduction starts as a separate group. From the last instruction to the
first, each group is merged into a group that reads its result, if both can run in one loop nest. A nest has
*outer* axes and, innermost, *inner* axes; a value of the group varies along all of them or along the outer ones
only, and every reduction of the group reduces exactly the inner ones. So softmax, layer norm, batch norm or an
optimizer's update become one nest each. Values that other groups need are stored.

Groups whose instruction is not a loop (a matrix product, a scatter) stay separate.

Instructions that only follow from new state, such as a norm of the new weights, are merged last, and never into a nest
where that could change the order of a sum. So the state is bitwise the same with or without them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from glassgrad.compile.ir.graph import Graph, Instr, Var
from glassgrad.compile.plan.indexing.indices import Axis, Extents, Index, Indices, NeedsSplit, NotAffine
from glassgrad.compile.plan.late import late_instrs
from glassgrad.compile.plan.links import Links
from glassgrad.compile.plan.recompute import tokens_of
from glassgrad.compile.plan.view_chains import ViewChain
from glassgrad.ops.views import broadcast_indices

# A group with a reduction over many elements and few independent results must not also contain the consumers of
# those results, because only the results are independent work, so threads would have nothing to share.
_FEW_RESULTS = 16
_SMALL_NEST = 16384
_MAX_MEMBERS = 120

# A chain of scalars is merged into a reader's nest only if that is too small to share, and only if the chain has no
# other reader, which would have to wait for the rest of the nest.
_SMALL_SHARED = 2048
_SCALARS = 64

_axes = itertools.count(1)

Reads = Callable[[Instr, int, Indices, Extents], Indices | None]


def same_point(instr: Instr, position: int, out: Indices, extents: Extents) -> Indices | None:
    """The rule of elementwise ops: every operand is read at the indices given by NumPy's broadcasting."""
    operand = instr.inputs[position]
    return broadcast_indices(out, operand.shape) if isinstance(operand, Var) else None


@dataclass(frozen=True)
class LoopOp:
    """How an op takes part in loop nests.

    `reads` returns the indices at which an operand is read, or None if the operand must be in memory.
    `reduces` tells whether the op reduces the axes in its parameter ``axis``.
    """

    reads: Reads = same_point
    reduces: bool = False


@dataclass(eq=False)
class Group:
    """Instructions that run in one loop nest, or one instruction that is not a loop (`solid`).

    `bases` are the Vars that the members read, behind any views.
    """

    members: list[Instr]
    extents: dict[Axis, int] = field(default_factory=dict)
    inner: frozenset[Axis] = frozenset()
    bases: frozenset[Var] = frozenset()
    indices: dict[Var, Indices] = field(default_factory=dict)
    reduced: dict[Var, Indices] = field(default_factory=dict)
    solid: bool = False
    first: int = 0
    last: int = 0

    @property
    def outer(self) -> frozenset[Axis]:
        return frozenset(self.extents) - self.inner

    @property
    def has_reduction(self) -> bool:
        return bool(self.reduced)

    def substitute(self, replacement: Mapping[Axis, Index]) -> None:
        """Rewrite all indices; the caller adjusts `extents` and `inner`."""
        for table in (self.indices, self.reduced):
            for var, indices in table.items():
                table[var] = tuple(index.substituted(replacement) for index in indices)

    def split(self, axis: Axis, inner: int) -> None:
        """Replace an axis by two, the inner one of extent `inner`."""
        high, low = next(_axes), next(_axes)
        extent = self.extents.pop(axis)
        self.extents[high], self.extents[low] = extent // inner, inner
        self.substitute({axis: Index(0, ((high, inner), (low, 1)))})
        if axis in self.inner:
            self.inner = self.inner - {axis} | {high, low}

    def divided(self, axis: Axis, inner: int) -> Group:
        """Return a copy with the axis split."""
        group = self.copy()
        group.split(axis, inner)
        return group

    def copy(self) -> Group:
        return replace(
            self,
            members=list(self.members),
            extents=dict(self.extents),
            indices=dict(self.indices),
            reduced=dict(self.reduced),
        )


def operand_indices(group: Group, instr: Instr, position: int, table: Mapping[str, LoopOp]) -> Indices | None:
    """Return the indices at which a member reads an operand; None if the operand must be in memory."""
    out = group.indices[instr.output]
    loop = table[instr.op]
    if not loop.reduces:
        return loop.reads(instr, position, out, group.extents)
    return reduction_indices(instr, out, group.reduced[instr.output])


def reduction_indices(instr: Instr, out: Indices, reduced: Indices) -> Indices:
    """Return the indices of a reduction's operand from those of its result and of the reduced axes."""
    source = instr.inputs[0]
    assert isinstance(source, Var)
    axes, keep = instr.params["axis"], instr.params["keepdims"]
    kept, summed = iter(out), iter(reduced)
    found = []
    for position in range(source.ndim):
        if position in axes:
            found.append(next(summed))
            if keep:
                next(kept)
        else:
            found.append(next(kept))
    return tuple(found)


class Fusion:
    """The grouping of a graph; see the module docstring.

    Attributes:
        views: instructions that are read through instead of executed.
        groups: the result, in a possible execution order.
        hosts: instructions that the host computes.
        alone: instructions that keep a separate nest.
        group_of: the group of each instruction that is not a view.
        tokens: the values that each of them waits for without using them.
        links: the dependencies between groups.
    """

    def __init__(
        self,
        graph: Graph,
        table: Mapping[str, LoopOp],
        views: set[Instr],
        hosts: set[Instr],
        alone: Collection[Instr] = (),
    ) -> None:
        self.graph = graph
        self.table = table
        self.views = views
        self.hosts = hosts
        self.alone = alone
        self.late = late_instrs(graph)
        self._finishing = False
        self.producer = graph.producers()
        self.chain = ViewChain(views, self.producer)
        self.group_of: dict[Instr, Group] = {}
        self.position = {instr: number for number, instr in enumerate(graph.instrs)}
        # The reads of each instruction, which never change: the operand's position, the Var, and the Var behind its
        # views.
        self._reads: dict[Instr, list[tuple[int, Var, Var]]] = {}
        self.users: dict[Var, list[Instr]] = {}
        self.tokens: dict[Instr, list[Var]] = {}
        for instr in graph.instrs:
            if instr not in views:
                operands = [(at, var) for at, var in enumerate(instr.inputs) if isinstance(var, Var)]
                self._reads[instr] = [(at, var, self.base(var)) for at, var in operands]
                self.tokens[instr] = tokens_of(self.producer, views, instr.reads())
                self.group_of[instr] = group = self._single(instr)
                for base in group.bases:
                    self.users.setdefault(base, []).append(instr)
        self.links = Links(
            {
                group: {self.group_of[self.producer[base]] for base in group.bases if base in self.producer}
                for group in self.group_of.values()
            }
        )

    # --- structure ---------------------------------------------------------------------------------

    def base(self, var: Var) -> Var:
        """Return the Var behind a chain of views."""
        return self.chain.base(var)

    def _single(self, instr: Instr) -> Group:
        position = self.position[instr]
        bases = frozenset([*(base for _, _, base in self._reads[instr]), *map(self.base, self.tokens[instr])])
        loop = self.table.get(instr.op)
        if loop is None or len(instr.outputs) != 1 or instr in self.hosts:
            return Group([instr], bases=bases, solid=True, first=position, last=position)
        group = Group([instr], bases=bases, first=position, last=position)
        group.indices[instr.output] = self._fresh(group, instr.output.shape)
        if loop.reduces:
            source = instr.inputs[0]
            assert isinstance(source, Var)
            shape = [source.shape[axis] for axis in sorted(instr.params["axis"])]
            before = set(group.extents)
            group.reduced[instr.output] = self._fresh(group, shape)
            group.inner = frozenset(set(group.extents) - before)
        return group

    @staticmethod
    def _fresh(group: Group, shape: Sequence[int]) -> Indices:
        indices = []
        for extent in shape:
            if extent == 1:
                indices.append(Index())
                continue
            axis = next(_axes)
            group.extents[axis] = extent
            indices.append(Index(0, ((axis, 1),)))
        return tuple(indices)

    def readers(self, group: Group) -> list[Group]:
        """Return the groups that read a group's results, earliest first."""
        return sorted(self.links.readers[group], key=lambda other: other.first)

    def _put(self, merged: Group, parts: tuple[Group, Group]) -> None:
        """Replace two groups by the merged one."""
        for instr in merged.members:
            self.group_of[instr] = merged
        self.links.join(merged, *parts)

    # --- merging -----------------------------------------------------------------------------------

    def run(self) -> list[Group]:
        """Merge all mergeable groups; return the groups in order."""
        self._merge_all()
        if self.late:
            self._finishing = True
            self._merge_all()
        return self.ordered()

    def _merge_all(self) -> None:
        for instr in reversed(self.graph.instrs):
            if instr not in self.views:
                self._merge_into_readers(self.group_of[instr])
        changed = True
        while changed:
            changed = False
            for group in self.ordered():
                if self.group_of[group.members[0]] is group:  # not merged away in this round
                    changed |= self._merge_into_readers(group)

    def _merge_into_readers(self, group: Group) -> bool:
        if group.solid or not self._may_share(group):
            return False
        readers = self.readers(group)
        if len(readers) > 1 and not group.has_reduction and math.prod(group.extents.values()) <= _SCALARS:
            return False
        for reader in readers:
            if reader.solid or not self._may_share(reader) or self.links.between(group, reader):
                continue
            if self.late and not self._is_time(group, reader):
                continue
            merged = merge(self, group, reader)
            if merged is not None:
                self._put(merged, (group, reader))
                return True
        return False

    def _is_time(self, maker: Group, reader: Group) -> bool:
        """Tell whether late instructions may be merged now."""
        if self.late.isdisjoint(reader.members):
            return True
        return self._finishing and (not maker.has_reduction or self.late.issuperset(maker.members))

    def _may_share(self, group: Group) -> bool:
        return group.members[0] not in self.alone  # such an instruction is the only member

    def ordered(self) -> list[Group]:
        """Return all groups, each after those it reads from; otherwise in program order."""
        groups = list(dict.fromkeys(self.group_of.values()))
        order: list[Group] = []
        done: set[Group] = set()
        pending = sorted(groups, key=lambda group: group.last)
        while pending:
            rest = []
            for group in pending:
                if self.links.feeders[group] <= done:
                    order.append(group)
                    done.add(group)
                else:
                    rest.append(group)
            assert len(rest) < len(pending), "groups depend on each other"
            pending = rest
        return order

    # --- reading -----------------------------------------------------------------------------------

    def reads_of(self, group: Group, wanted: Var | None = None) -> list[tuple[Var, Indices | None]]:
        """Return the reads of the members as (base, indices); indices are None if they are not affine.

        Raises `NeedsSplit` if an axis of the group must be split to express a read.
        """
        found: list[tuple[Var, Indices | None]] = []
        for instr in group.members:
            for position, operand, base in self._reads[instr]:
                if wanted is not None and base is not wanted:
                    continue
                try:
                    indices = operand_indices(group, instr, position, self.table)
                    if indices is not None:
                        indices = self.chain.indices(operand, indices, group.extents)[1]
                except NotAffine:
                    indices = None
                found.append((base, indices))
        return found


def merge(fusion: Fusion, maker: Group, reader: Group) -> Group | None:
    """Return one group that does the work of both, or None if one loop nest cannot.

    `maker` computes something that `reader` reads.
    """
    if len(maker.members) + len(reader.members) > _MAX_MEMBERS:
        return None
    while True:
        try:
            return _merge(fusion, maker, reader)
        except NeedsSplit as request:
            if request.axis in maker.extents:
                maker = maker.divided(request.axis, request.inner)
            else:
                reader = reader.divided(request.axis, request.inner)


def _merge(fusion: Fusion, maker: Group, reader: Group) -> Group | None:
    names: dict[Axis, Axis] = {}  # axes of the maker -> axes of the reader
    shared = {var: fusion.reads_of(reader, var) for var in maker.indices if var in reader.bases}
    for var, reads in shared.items():
        if not reads:  # the reader waits for the maker without using its result
            return None
        for _, indices in reads:
            if indices is None or not _unify(maker.indices[var], indices, (maker.extents, reader.extents), names):
                return None
    if not _match_rest(fusion, maker, reader, names):
        return None
    inner = _inner_axes(maker, reader, names)
    if inner is None:
        return None
    joined = _joined(maker, reader, names, inner)
    return joined if _reduces_inner_axes(joined) else None


def _reduces_inner_axes(group: Group) -> bool:
    """Tell whether every reduction is over exactly the inner axes, because a pass over them sums all iterations."""
    return all(
        frozenset[Axis]().union(*(index.axes for index in reduced)) == group.inner for reduced in group.reduced.values()
    )


def _unify(
    made: Indices, read: Indices, extents: tuple[Mapping[Axis, int], Mapping[Axis, int]], names: dict[Axis, Axis]
) -> bool:
    """Find the axes of maker and reader to identify, so that `made` and `read` are the same place."""
    for ours, theirs in zip(made, read, strict=True):
        if ours.offset != theirs.offset:
            return False
        left = sorted(ours.terms, key=lambda term: term[1])
        right = sorted(theirs.terms, key=lambda term: term[1])
        while left and right:
            (a, stride_a), (b, stride_b) = left.pop(0), right.pop(0)
            if stride_a != stride_b:
                return False
            size_a, size_b = extents[0][a], extents[1][b]
            if size_a > size_b and size_a % size_b == 0 and right:
                raise NeedsSplit(a, size_b)
            if size_b > size_a and size_b % size_a == 0 and left:
                raise NeedsSplit(b, size_a)
            if size_a != size_b or names.setdefault(a, b) != b:
                return False
        if left or right:
            return False
    return len(set(names.values())) == len(names)


def _match_rest(fusion: Fusion, maker: Group, reader: Group, names: dict[Axis, Axis]) -> bool:
    """Pair the maker's inner axes with the reader's remaining ones, if both have some.

    Any pairing gives correct results. It is efficient if both read an array at the same place, so arrays that both
    read decide first.
    """
    free = [axis for axis in maker.extents if axis not in names]
    rest = [axis for axis in reader.extents if axis not in names.values()]
    if not free or not rest:
        return not free or set(free) == maker.inner
    theirs = {base: indices for base, indices in fusion.reads_of(reader) if indices is not None}
    for base, indices in fusion.reads_of(maker):
        if indices is not None and base in theirs:
            trial = dict(names)
            if _unify(indices, theirs[base], (maker.extents, reader.extents), trial):
                names.update(trial)
    free = [axis for axis in maker.extents if axis not in names]
    rest = [axis for axis in reader.extents if axis not in names.values()]
    if [maker.extents[axis] for axis in free] != [reader.extents[axis] for axis in rest]:
        return False
    names.update(zip(free, rest, strict=True))
    return True


def _inner_axes(maker: Group, reader: Group, names: Mapping[Axis, Axis]) -> frozenset[Axis] | None:
    """Return the inner axes of the merged group, in the maker's names if it has them; None if impossible."""
    made_inner = frozenset(names.get(axis, axis) for axis in maker.inner)
    unmatched = frozenset(reader.extents) - frozenset(names.values())
    # All that are not empty must agree, because a nest has two levels, not three.
    wanted = {candidate for candidate in (made_inner, reader.inner, unmatched) if candidate}
    if len(wanted) > 1:
        return None
    if unmatched and not reader.inner and not _is_innermost(reader, unmatched):
        return None
    inner = next(iter(wanted), frozenset())
    return inner if _has_enough_results(maker, reader, names, inner) else None


def _is_innermost(reader: Group, axes: frozenset[Axis]) -> bool:
    """Tell whether the axes are the fastest ones of the results of a reader without inner axes."""
    indices = next(iter(reader.indices.values()))  # all of them vary over all axes
    order = [axis for index in indices for axis, _ in sorted(index.terms, key=lambda term: -term[1])]
    return set(order[-len(axes) :]) == axes


def _has_enough_results(maker: Group, reader: Group, names: Mapping[Axis, Axis], inner: frozenset[Axis]) -> bool:
    extents = {**reader.extents, **{names.get(axis, axis): extent for axis, extent in maker.extents.items()}}
    total = math.prod(extents.values())
    results = math.prod(extent for axis, extent in extents.items() if axis not in inner)
    reduces = maker.has_reduction or reader.has_reduction
    if total <= (_SMALL_NEST if reduces else _SMALL_SHARED) or results >= _FEW_RESULTS or not inner:
        return True
    # A reduction with few results may be merged with its inputs, and with consumers of only the results.
    if maker.has_reduction:
        return not any(axis in inner for axis in reader.extents)
    return reader.has_reduction


def _joined(maker: Group, reader: Group, names: Mapping[Axis, Axis], inner: frozenset[Axis]) -> Group:
    maker = maker.copy()  # most merge attempts fail before this
    maker.substitute({axis: Index(0, ((name, 1),)) for axis, name in names.items()})
    extents = {names.get(axis, axis): extent for axis, extent in maker.extents.items()}
    return Group(
        members=[*maker.members, *reader.members],
        extents={**reader.extents, **extents},
        inner=inner,
        bases=maker.bases | reader.bases,
        indices={**maker.indices, **reader.indices},
        reduced={**maker.reduced, **reader.reduced},
        first=min(maker.first, reader.first),
        last=max(maker.last, reader.last),
    )


def fuse(
    graph: Graph,
    table: Mapping[str, LoopOp],
    views: set[Instr],
    hosts: set[Instr],
    alone: Collection[Instr] = (),
) -> tuple[Fusion, list[Group]]:
    """Group the instructions of a graph; see `Fusion`."""
    fusion = Fusion(graph, table, views, hosts, alone)
    return fusion, fusion.run()
