"""The names that a script imports, each as the full name in its library.

glassgrad has PyTorch's names, so both are called `torch` here: `gg.nn.Linear` and `nn.Linear` are `torch.nn.Linear`.
"""

from __future__ import annotations

import ast

_SYNONYMS = {"glassgrad": "torch", "torch.nn.modules.loss": "torch.nn", "torch.nn.modules": "torch.nn"}


class Names:
    """The imports of a script, wherever they stand in it."""

    def __init__(self, tree: ast.AST) -> None:
        self._full: dict[str, str] = {}
        self._stars: list[str] = []
        self._found: dict[ast.AST, str] = {}
        self.modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    self.modules.add(one.name)
                    root = one.name.partition(".")[0]
                    self._full[one.asname or root] = one.name if one.asname else root
            elif isinstance(node, ast.ImportFrom):
                self._add_from(node)

    def _add_from(self, node: ast.ImportFrom) -> None:
        home = "." * node.level + (node.module or "")
        self.modules.add(home)
        for one in node.names:
            if one.name == "*":
                self._stars.append(home)
            else:
                self._full[one.asname or one.name] = f"{home}.{one.name}"

    def full(self, node: ast.AST) -> str:
        """Return the full name of `a.b.c` if `a` is imported; empty otherwise.

        Example:
            >>> names = Names(ast.parse("import glassgrad as gg"))
            >>> names.full(ast.parse("gg.nn.Linear", mode="eval").body)
            'torch.nn.Linear'
        """
        if node not in self._found:
            self._found[node] = self._full_name(node)
        return self._found[node]

    def _full_name(self, node: ast.AST) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        root = self._full.get(node.id) or self._from_star(node.id)
        return _canonical(".".join([root, *reversed(parts)])) if root else ""

    def _from_star(self, name: str) -> str:
        homes = [home for home in self._stars if _canonical(home) in {"torch.nn", "torch.nn.functional", "torch"}]
        if not homes or not name[:1].isalpha():
            return ""
        wanted = "torch.nn" if name[0].isupper() else "torch.nn.functional"
        return next((f"{home}.{name}" for home in homes if _canonical(home) == wanted), "")

    def is_torch(self, node: ast.AST) -> bool:
        """Tell whether a name comes from PyTorch itself."""
        while isinstance(node, ast.Attribute):
            node = node.value
        root = self._full.get(node.id, "") if isinstance(node, ast.Name) else ""
        return root.partition(".")[0] == "torch"

    @property
    def trains(self) -> bool:
        """Whether the script imports one of the libraries that are known here, or what builds on them."""
        roots = {one.partition(".")[0] for one in self.modules}
        return bool(roots & {"torch", "glassgrad", "torchvision", "lightning", "pytorch_lightning"})


def _canonical(name: str) -> str:
    for theirs, ours in _SYNONYMS.items():
        if name == theirs or name.startswith(f"{theirs}."):
            name = ours + name.removeprefix(theirs)
    return name


def last(name: str) -> str:
    """Return the part of a full name behind its last dot."""
    return name.rpartition(".")[2]


def named(text: str) -> frozenset[str]:
    """Return the names in a text."""
    return frozenset(text.split())


def titles(text: str) -> tuple[str, ...]:
    """Return the titles in a text, which semicolons part.

    Example:
        >>> titles("loss rises; loss spikes")
        ('loss rises', 'loss spikes')
    """
    return tuple(text.split("; "))
