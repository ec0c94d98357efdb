"""The text in a box and its size."""

from __future__ import annotations

from dataclasses import dataclass

from glassgrad.base.drawing.graph import Graph, Node, Path, Sweep

LETTER, LINE, PAD = 6.7, 15.0, 8.0  # of the font that svg.py sets
_LONGEST = 30
_APART = 13.0  # between edges that enter a box


@dataclass(frozen=True)
class Box:
    """Lines of text (the name in the first is bold), the class that gives the colour, and the text shown on hover."""

    lines: tuple[str, ...]
    kind: str
    hint: str = ""
    after: str = ""  # follows the name in the first line
    entering: int = 0  # edges that need room on the left side

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        if self.kind == "port":
            return PAD + LETTER * max((len(line) for line in self.lines), default=0), 16.0
        first = len(self.lines[0]) + (len(self.after) + 1 if self.after else 0)
        widest = max([first, *map(len, self.lines)])
        return max(34.0, 2 * PAD + LETTER * widest), max(
            2 * PAD - 3 + LINE * len(self.lines), _APART * (self.entering + 1)
        )


def cut(text: str, longest: int = _LONGEST) -> str:
    """Shorten a text to at most `longest` letters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def box_of(node: Node, sweep: Sweep | None = None, at: int = -1, path: Path = ()) -> Box:
    """Return the box of a node in a module; in a sweep it shows the value computed there instead of the gradient."""
    kind = "result" if node.root else node.kind
    if node.kind == "constant" and node.value is not None and node.value.text:
        return Box((cut(node.value.text, 16),), kind, hint(node))
    name, after = head(node, path)
    name = f"… {name}" if node.kind == "cut" else name
    lines = [name]
    if node.shape and node.kind != "neuron":
        lines.append(cut(f"{node.dtype} {shape_text(node.shape)}"))
    if node.value is not None:
        lines.append(cut(node.value.short if node.shape else f"= {node.value.short}"))
    if sweep is not None:
        lines.append(cut(sweep.values.get(at, "")))
        kind = kind if at in sweep.values else "asleep"
    elif node.gradient is not None:
        lines.append(cut(f"grad {node.gradient.short}"))
    return Box(tuple(lines), kind, hint(node), after)


def head(node: Node, path: Path) -> tuple[str, str]:
    """Return the first line in two parts: the user's variable without its module, and the op."""
    name = node.name.removeprefix("".join(f"{part}." for part in path))
    if node.kind == "update":
        return cut(f"{node.name} ←"), ""
    if name and node.op:
        return cut(name, 20), cut(node.op, 20)
    return cut(name or node.op or node.kind), ""


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape as PyTorch does."""
    return "[" + ", ".join(map(str, shape)) + "]"


def hint(node: Node) -> str:
    """Return all known facts about a node."""
    lines = [f"{node.name} = {node.formula}" if node.name and node.formula else node.formula or node.name]
    lines.append(f"{node.kind}, {node.dtype} {shape_text(node.shape)}" if node.dtype else node.kind)
    if node.value is not None:
        lines.append(f"value: {node.value.long}")
    if node.gradient is not None:
        lines.append(f"gradient: {node.gradient.long}")
    if node.where:
        lines.append(f"{node.where}  {node.source}")
    return "\n".join(filter(None, lines))


def module_box(graph: Graph, path: Path, ops: int, result: Node | None) -> Box:
    """Return the box of a closed module."""
    lines = [cut(path[-1]), cut(graph.modules.get(path, ""))]
    if result is not None and result.dtype:  # numbers of the scalar engine have neither dtype nor shape
        lines.append(cut(f"{result.dtype} {shape_text(result.shape)}"))
    lines.append(f"{ops} op{'s' if ops != 1 else ''}")
    return Box(tuple(filter(None, lines)), "module", "/".join(path))
