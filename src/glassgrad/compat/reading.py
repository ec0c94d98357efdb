"""Which names of PyTorch's a program uses, read from its syntax tree: imports, aliases, attributes, methods of tensors.

What a variable holds is known only where every assignment to it says so: `x = torch.zeros(3)`, or an argument
`x: torch.Tensor`. Nothing is said of anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from glassgrad.base.tables import words

# Functions of torch that return a tensor, and methods that return one for a tensor.
_MAKERS = set(
    words(
        """
        tensor zeros ones randn rand arange linspace full empty eye randint randperm zeros_like ones_like randn_like
        rand_like full_like empty_like from_numpy as_tensor stack cat where matmul exp log sin cos tanh sigmoid relu
        """
    )
)
_KEEP = set(
    words(
        """
        to float double long int view reshape permute transpose t flatten squeeze unsqueeze expand sum mean exp log abs
        sqrt clone detach cpu contiguous requires_grad_ matmul mm bmm repeat softmax clamp pow add sub mul div
        """
    )
)
_CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "NotImplementedError", "Exception", "BaseException"}
_NEVER = {"torch.cuda.is_available", "torch.backends.mps.is_available", "torch.xpu.is_available"}
_TENSOR = "torch.Tensor"


@dataclass(frozen=True)
class Use:
    """A dotted name that a program uses, its line, and whether its absence is caught or never noticed."""

    path: str
    line: int
    guarded: bool


class Program:
    """A program as it is written.

    Attributes:
        uses: the names of packages that it uses, with full paths: "torch.nn.Linear", "torch.Tensor.relu_".
        modules: the modules that it imports.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.modules: list[str] = []
        self.uses: list[Use] = []
        self._aliases = _Aliases(tree, self.modules)
        _Reader(self).read(tree)

    def path(self, node: ast.expr) -> str | None:
        """Return the full path of a name or an attribute of an imported module; None for anything else."""
        if isinstance(node, ast.Name):
            return self._aliases.paths.get(node.id)
        if isinstance(node, ast.Attribute):
            above = self.path(node.value)
            return None if above is None else f"{above}.{node.attr}"
        return None


class _Aliases:
    """The names that imports bind, and the paths they stand for, where nothing else is ever bound to them."""

    def __init__(self, tree: ast.Module, modules: list[str]) -> None:
        self.paths: dict[str, str] = {}
        clashing: set[str] = set()
        for node in ast.walk(tree):
            for name, path in self._bound(node, modules):
                if self.paths.setdefault(name, path) != path:
                    clashing.add(name)
        for node in ast.walk(tree):  # a parameter called `torch`, a function called `nn`
            clashing |= set(_binds(node))
        for name in clashing:
            self.paths.pop(name, None)

    @staticmethod
    def _bound(node: ast.AST, modules: list[str]) -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules.append(alias.name)
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
            for alias in node.names:
                modules.append(f"{node.module}.{alias.name}")
                if not node.level and alias.name != "*":
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _binds(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, other than by an import."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
        yield node.name


class _Scope:
    """A function or the module: what is assigned to each of its names, None where that is not known."""

    def __init__(self, node: ast.AST, parent: _Scope | None) -> None:
        self.parent = parent
        self.values: dict[str, list[ast.expr | ast.arg | None]] = {}
        known: set[int] = set()
        for part in _of_scope(node):
            if isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
                self._add(part.targets[0].id, part.value)
                known.add(id(part.targets[0]))
            elif isinstance(part, ast.arg):
                self._add(part.arg, part)
            for name in _binds(part) if id(part) not in known and not isinstance(part, ast.arg) else ():
                self._add(name, None)

    def _add(self, name: str, value: ast.expr | ast.arg | None) -> None:
        self.values.setdefault(name, []).append(value)


def _of_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, without those of the functions and classes in it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _of_scope(child)


class _Reader:
    """Walks the tree and collects uses; knows which scope it is in, and what guards a line."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._scope: _Scope | None = None
        self._guarded = False
        self._asked: tuple[str, ...] = ()  # names that a `hasattr` around this line asks for

    def read(self, node: ast.AST) -> None:
        """Read a node and all below it."""
        outer = self._scope, self._guarded, self._asked
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self._scope = _Scope(node, self._scope)
        self._guard(node)
        if isinstance(node, ast.Try):
            self._read_try(node)
        elif not self._of_import(node) and not self._of_attribute(node):
            for child in ast.iter_child_nodes(node):
                self.read(child)
        self._scope, self._guarded, self._asked = outer

    def _use(self, path: str, node: ast.stmt | ast.expr) -> None:
        guarded = self._guarded or path.rpartition(".")[2] in self._asked
        self._program.uses.append(Use(path, node.lineno, guarded))

    def _of_import(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._use(alias.name, node)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._use(node.module if alias.name == "*" else f"{node.module}.{alias.name}", node)
        return isinstance(node, ast.Import | ast.ImportFrom)

    def _of_attribute(self, node: ast.AST) -> bool:
        """Note an attribute of a module or of a tensor; tell whether all of the node has been read."""
        if isinstance(node, ast.Name):
            path = self._program.path(node)
            if path is not None:
                self._use(path, node)
            return True
        if not isinstance(node, ast.Attribute):
            return False
        path = self._program.path(node)
        if path is not None:
            stored = not isinstance(node.ctx, ast.Load)  # setting a switch makes the name
            self._use(path.rpartition(".")[0] if stored else path, node)
            return True
        if isinstance(node.ctx, ast.Load) and self._is_tensor(node.value, self._scope, 0):
            self._use(f"{_TENSOR}.{node.attr}", node)
        return False

    # --- guards ---------------------------------------------------------------------------------------

    def _guard(self, node: ast.AST) -> None:
        if not isinstance(node, ast.If | ast.IfExp | ast.While):
            return
        for part in ast.walk(node.test):
            if not isinstance(part, ast.Call):
                continue
            name = self._program.path(part.func)
            if name in _NEVER and not isinstance(node.test, ast.UnaryOp):
                self._guarded = True
            elif isinstance(part.func, ast.Name) and part.func.id == "hasattr" and len(part.args) == 2:
                asked = part.args[1]
                self._asked += (str(asked.value),) if isinstance(asked, ast.Constant) else ()

    def _read_try(self, node: ast.Try) -> None:
        before = self._guarded
        caught = {part.id for handler in node.handlers if handler.type for part in _names(handler.type)}
        self._guarded = before or bool(caught & _CAUGHT) or any(handler.type is None for handler in node.handlers)
        for child in node.body:
            self.read(child)
        self._guarded = before
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.read(part)

    # --- tensors --------------------------------------------------------------------------------------

    def _is_tensor(self, node: ast.expr | ast.arg | None, scope: _Scope | None, depth: int) -> bool:
        """Tell whether an expression is certainly a tensor."""
        if node is None or depth > 20:
            return False
        if isinstance(node, ast.BinOp):
            return self._is_tensor(node.left, scope, depth + 1) or self._is_tensor(node.right, scope, depth + 1)
        if isinstance(node, ast.Call):
            path = self._program.path(node.func)
            if path is not None:
                return path.removeprefix("torch.") in _MAKERS and path.startswith("torch.")
            kept = isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP
            return kept and self._is_tensor(getattr(node.func, "value", None), scope, depth + 1)
        if isinstance(node, ast.arg):
            return node.annotation is not None and self._program.path(node.annotation) == _TENSOR
        if isinstance(node, ast.Name):
            while scope is not None and node.id not in scope.values:
                scope = scope.parent
            values = [] if scope is None else scope.values[node.id]
            return bool(values) and all(self._is_tensor(value, scope, depth + 1) for value in values)
        return False


def _names(node: ast.expr) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


__all__ = ["Program", "Use"]
