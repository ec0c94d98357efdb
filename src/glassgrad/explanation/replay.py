"""The ops behind a result as a function of its leaves, whose instructions are at the user's lines.

Whatever explains, checks and compiles takes a function, but a program may be a script. So the recorded ops are written
as a function: a statement for each call of the user's, compiled with the positions of the user's expressions.
Whoever asks for the place of an op finds the user's line and variable.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import CodeType, FunctionType

import numpy as np

from glassgrad import errors
from glassgrad.compile.source.statements import span_of
from glassgrad.engine.function import UserPrimitive
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.explanation.record import Traced, trace
from glassgrad.explanation.recording import Op, Recorder, source_of, unseen
from glassgrad.ops.core import Array

Source = tuple[Node | Tensor | None, int | None]
Key = object
"""A value: the node that made it, or the identity of a leaf or of an array of data."""


@dataclass
class Given:
    """An input of the function.

    Attributes:
        name: as an identifier.
        label: as the user would write it.
        tensor: the leaf; None for data, which has no gradient.
    """

    name: str
    label: str
    array: Array
    tensor: Tensor | None = None


@dataclass(eq=False)
class _Call:
    """The ops of one call of the user's, with the values that it reads and those that others read."""

    ops: list[Op]
    reads: list[Key] = field(default_factory=list)
    leaves: list[Key] = field(default_factory=list)


class _Again:
    """Applies the ops of a call again. It is the library's, so a trace does not look into it."""

    def __init__(self, calls: Sequence[_Call]) -> None:
        self._calls = calls
        self._made: dict[Node, Array] | None = None  # a trace must not leave values behind

    def __call__(self, number: int, *given: Array) -> tuple[Array, ...]:
        call = self._calls[number]
        known: dict[Key, Array] = dict(zip(call.reads, given, strict=True))
        for op in call.ops:
            args = [_value(known, source, array) for source, array in _pairs(op)]
            result = _applied(op.node, args)
            if isinstance(result, tuple) and not op.node.prim.multiple:
                result = result[0]  # the others are companions, which have no gradient
            known[op.node] = result
            if self._made is not None:
                self._made[op.node] = result
        return tuple(known[key] for key in call.leaves)


def _applied(node: Node, args: Sequence[Array]) -> Array:
    """Apply the op of a node to other arguments."""
    if isinstance(node.prim, UserPrimitive):
        return node.params["call"].function.apply(*args)
    return node.prim(*args, **node.params)


def _pairs(op: Op) -> Iterable[tuple[Source, Array]]:
    assert op.args is not None
    return zip(op.sources, op.args, strict=False)


def _key(source: Source, array: Array) -> Key:
    """Return what identifies an argument."""
    parent = source[0]
    return parent if isinstance(parent, Node) else id(array) if parent is None else id(parent)


def _value(known: Mapping[Key, Array], source: Source, array: Array) -> Array:
    found = known.get(_key(source, array), array)
    return found if source[1] is None else found[source[1]]


class Replay:
    """The computation of a result again, as functions of its inputs.

    Attributes:
        leaves: the inputs with a gradient.
        data: the arrays of the user's variables among its constants.
        nodes: the ops, oldest first.

    Raises:
        ArgumentError: an op is not kept any more, or it was applied inside `vmap`.
    """

    def __init__(self, root: Tensor, recorder: Recorder, names: Mapping[str, object], title: str) -> None:
        assert root.node is not None
        found, self._place = source_of(root.node)
        assert isinstance(found, Node)
        self.root = found
        self._value = np.array(root.detach().numpy())
        ops = _behind(self.root, recorder)
        self.nodes = [op.node for op in ops]
        self._file = ops[-1].place[0].co_filename
        self.title = title
        named = _names_of(names)
        self.leaves, self.data = _inputs(ops, named)
        self._calls = [_Call(list(group)) for _, group in groupby(ops, key=lambda op: op.call)]
        self._keys = dict(self._by_key())
        self._connect()
        self._again = _Again(self._calls)
        self.function = self._made([*self.data, *self.leaves])
        self.of_leaves = self._made(self.leaves)

    @property
    def labels(self) -> dict[str, str]:
        """The user's words for the names of inputs."""
        return {one.name: one.label for one in (*self.data, *self.leaves)}

    def arguments(self) -> list[Tensor]:
        """Return the arguments of `function`: data, and leaves that require a gradient."""
        return [
            *(Tensor(one.array) for one in self.data),
            *(Tensor(np.array(one.array), requires_grad=True) for one in self.leaves),
        ]

    def arrays(self) -> list[Array]:
        """Return the arguments of `of_leaves`."""
        return [one.array for one in self.leaves]

    def traced(self) -> tuple[Traced, dict[Node, Node]]:
        """Run it again; return the call, and for each node of the program the node that stands for it now."""
        kept = self._again._made = {}
        try:
            call = trace(self.of_leaves, self.arrays(), {})
        finally:
            self._again._made = None
        if not np.allclose(np.asarray(call.result.detach().numpy()), self._value, rtol=1e-3, equal_nan=True):
            raise errors.PLAYGROUND_NOT_AGAIN(op=self.root.name, where=self.root.place.quoted())
        made: dict[Node, Node] = {}
        for old, result in kept.items():
            node = getattr(result[0] if isinstance(result, tuple) and result else result, "node", None)
            now = None if node is None else source_of(node)[0]
            if isinstance(now, Node):
                made[old] = now
        return call, made

    # --- the function -------------------------------------------------------------------------------------------

    def _by_key(self) -> Iterable[tuple[Key, str]]:
        yield from ((id(one.tensor), one.name) for one in self.leaves)
        yield from ((id(one.array), one.name) for one in self.data)
        yield from ((node, f"_v{at}") for at, node in enumerate(self.nodes))

    def _connect(self) -> None:
        """Find what each call reads and what others read of it."""
        home: dict[Key, int] = {op.node: at for at, call in enumerate(self._calls) for op in call.ops}
        needed: dict[int, dict[Key, None]] = {}
        for at, call in enumerate(self._calls):
            keys = [_key(source, array) for op in call.ops for source, array in _pairs(op)]
            call.reads = [key for key in dict.fromkeys(keys) if key in self._keys and home.get(key, -1) != at]
            for key in call.reads:
                if isinstance(key, Node):
                    needed.setdefault(home[key], {})[key] = None
        needed.setdefault(home[self.root], {})[self.root] = None
        for at, call in enumerate(self._calls):
            call.leaves = [*needed.get(at, ())]

    def _made(self, parameters: Sequence[Given]) -> FunctionType:
        names = [one.name for one in parameters]
        body: list[ast.stmt] = [
            statement for at, call in enumerate(self._calls) if (statement := self._statement(at, call)) is not None
        ]
        result: ast.expr = ast.Name(self._keys[self.root], ast.Load())
        if self._place is not None:
            result = ast.Subscript(result, ast.Constant(self._place), ast.Load())
        body.append(ast.Return(result))
        tree = ast.parse(f"def {self.title}({', '.join(names)}):\n    pass")
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        # The file as its docstring: Python calls code equal that differs in the name of its file alone.
        definition.body = [ast.Expr(ast.Constant(self._file)), *body]
        ast.fix_missing_locations(tree)
        space: dict[str, object] = {"_again": self._again, "__name__": "__main__"}
        space |= {one.name: one.array for one in self.data}
        code = next(one for one in compile(tree, self._file, "exec").co_consts if isinstance(one, CodeType))
        return FunctionType(code, space)

    def _statement(self, number: int, call: _Call) -> ast.stmt | None:
        if not call.leaves:
            return None
        where = call.ops[-1].place
        read = [ast.Name(self._keys[key], ast.Load()) for key in call.reads]
        value = ast.Call(ast.Name("_again", ast.Load()), [ast.Constant(number), *read], [])
        target = ast.Tuple([ast.Name(self._keys[key], ast.Store()) for key in call.leaves], ast.Store())
        made = ast.Assign([target], value)
        line, end, column, last = span_of(*where)
        for part in ast.walk(made):
            if isinstance(part, ast.expr | ast.stmt):
                part.lineno, part.end_lineno = line, end or line
                part.col_offset, part.end_col_offset = column or 0, last or (column or 0) + 1
        return made


def _behind(root: Node, recorder: Recorder) -> list[Op]:
    """Return the ops that a result was made by, oldest first."""
    found: dict[Node, Op] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        op = recorder.find(node) or unseen(node, -node.seq)
        if op.args is None:
            raise errors.PLAYGROUND_NOT_AGAIN(op=node.name, where=node.place.quoted())
        found[node] = op
        waiting += [parent for parent, _ in op.sources if isinstance(parent, Node)]
    return sorted(found.values(), key=lambda op: op.node.seq)


def _names_of(names: Mapping[str, object]) -> dict[int, str]:
    """Return the user's words for tensors and their arrays, by identity."""
    found: dict[int, str] = {}

    def note(label: str, value: object) -> None:
        if isinstance(value, Tensor):
            found.setdefault(id(value), label)
            found.setdefault(id(value.array), label)
        elif isinstance(value, np.ndarray):
            found.setdefault(id(value), label)

    for name, value in names.items():
        if name.startswith("_"):
            continue
        note(name, value)
        if isinstance(value, list | tuple) and len(value) <= _LONG:
            for at, one in enumerate(value):
                note(f"{name}[{at}]", one)
        elif not isinstance(value, type) and hasattr(type(value), "named_parameters"):
            for inner, one in _parameters(value):
                note(f"{name}.{inner}", one)
    return found


def _parameters(module: Array) -> list[tuple[str, Array]]:
    return [*module.named_parameters(), *module.named_buffers()]


_LONG = 100  # entries of a list whose tensors are named


def _inputs(ops: Sequence[Op], named: Mapping[int, str]) -> tuple[list[Given], list[Given]]:
    """Return the leaves and the data among the arguments of ops, in the order in which they are read."""
    leaves: dict[int, Given] = {}
    data: dict[int, Given] = {}
    taken = {"_again"}
    for op in ops:
        for (parent, _), array in _pairs(op):
            if isinstance(parent, Tensor) and id(parent) not in leaves:
                label = named.get(id(parent)) or f"leaf {len(leaves) + 1}"
                _, value = op.leaves.get(id(parent), (parent, np.array(parent.array)))
                leaves[id(parent)] = Given(_identifier(label, taken), label, value, parent)
            elif parent is None and isinstance(array, np.ndarray) and id(array) in named and id(array) not in data:
                label = named[id(array)]
                data[id(array)] = Given(_identifier(label, taken), label, array)
    return [*leaves.values()], [*data.values()]


def _identifier(label: str, taken: set[str]) -> str:
    base = re.sub(r"\W+", "_", label).strip("_")
    base = f"x_{base}" if not base or base[0].isdigit() else base
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    taken.add(name)
    return name
