"""Read scripts and report what their source shows to be wrong."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from glassgrad import errors
from glassgrad.doctor.reading.about import OF_COMMENTS, RULES
from glassgrad.doctor.reading.nodes import method_of
from glassgrad.doctor.reading.program import Program
from glassgrad.doctor.reading.rule import SEVERITIES, Node, Rule, Spot, name_of, words
from glassgrad.doctor.reading.silences import Silence, silences
from glassgrad.doctor.reading.source import Script, Unreadable, files, read

_EVENTS = frozenset({"backward", "step", "zero_grad"})


@dataclass(frozen=True)
class Remark:
    """What a rule found at a place of a script.

    Attributes:
        title: of the rule; `name` is its stable name.
        severity: "error", "warning" or "info".
        path, line, column: the place, from 1 on; `cell` is the number of a notebook's cell, 0 outside of notebooks.
        what, advice, remedy: the fault in words, what to do, and the same as a line of code.
        also: other lines of the script that belong to the fault; `other` is the first of them that holds no backward
            pass, no step and no loop, 0 without any.
    """

    title: str
    severity: str
    path: str
    line: int
    column: int
    what: str
    advice: str
    remedy: str = ""
    cell: int = 0
    also: tuple[int, ...] = ()
    other: int = 0

    @property
    def name(self) -> str:
        """Its stable name, as that of a finding."""
        return name_of(self.title)

    @property
    def file(self) -> str:
        """The path, with the cell in a notebook."""
        return f"{self.path}:cell {self.cell}" if self.cell else self.path


@dataclass(frozen=True)
class Reading:
    """What was found in some scripts.

    Attributes:
        remarks: the findings, by file and line.
        unreadable: the files that could not be read.
        scripts: the number of files that were read.
    """

    remarks: tuple[Remark, ...]
    unreadable: tuple[Unreadable, ...]
    scripts: int

    @property
    def code(self) -> int:
        """The exit code: 2 if a file could not be read, 1 if something was found, otherwise 0."""
        return 2 if self.unreadable else 1 if self.remarks else 0


def names() -> list[str]:
    """Return the names of all rules."""
    return [name_of(title) for title in words()]


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> frozenset[str]:
    """Return the names of the rules that are selected and not ignored.

    Raises:
        InputError: a name that no rule has.
    """
    wanted, left_out = frozenset(select), frozenset(ignore)
    known = names()
    for one in sorted(wanted | left_out):
        if one not in known:
            near = difflib.get_close_matches(one, known, 3, 0.5)
            hint = f"Did you mean {', '.join(near)}?" if near else "glassgrad lint --rules lists all."
            raise errors.LINT_NO_RULE(name=one, near=hint)
    return (wanted or frozenset(known)) - left_out


def lint(paths: Iterable[str], select: Iterable[str] = (), ignore: Iterable[str] = ()) -> Reading:
    """Read scripts, notebooks and folders, and return what is wrong with them.

    Args:
        paths: of files and folders.
        select: the names of the rules to apply; all by default.
        ignore: the names of rules to leave out.

    Raises:
        InputError: a path does not exist, or no rule has one of the names.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     script = pathlib.Path(folder, "train.py")
        ...     _ = script.write_text("import torch; loss = torch.ones(1); loss.backward")
        ...     found = lint([str(script)])
        >>> [(one.name, one.line) for one in found.remarks], found.code
        ([('method-not-called', 1)], 1)
    """
    wanted = chosen(select, ignore)
    remarks: list[Remark] = []
    unreadable: list[Unreadable] = []
    count = 0
    for path in files(paths):
        found = of_file(path, wanted)
        if isinstance(found, Unreadable):
            unreadable.append(found)
        else:
            count += 1
            remarks += found
    return Reading(tuple(remarks), tuple(unreadable), count)


def of_file(path: str, wanted: Collection[str]) -> list[Remark] | Unreadable:
    """Return what the rules find in a file, or why it cannot be read."""
    script = read(path)
    try:
        return script if isinstance(script, Unreadable) else remarks_of(script, wanted)
    except RecursionError:  # an expression of a thousand terms
        return Unreadable(path, 1, 1, "an expression is nested too deeply")


def remarks_of(script: Script, wanted: Collection[str]) -> list[Remark]:
    """Return what the rules find in a script, in the order of its lines, without what comments silence."""
    program = Program(script.tree)
    comments = silences(script.text)
    found: dict[tuple[str, int, int], tuple[int, Remark]] = {}
    for rule in RULES if program.names.trains else ():
        if rule.name in wanted:
            for seen in rule.look(program):
                if not _is_silenced(rule, program, seen, comments):
                    line, remark = seen.node.lineno, _remark(rule.title, script, seen)
                    found.setdefault((rule.title, line, seen.node.col_offset), (line, remark))
    for comment in comments:
        for line, remark in _about(comment, script, wanted):
            found[remark.title, line, len(found)] = (line, remark)
    rows = sorted(found.values(), key=lambda row: (row[0], SEVERITIES.index(row[1].severity)))
    return [remark for _, remark in rows]


def _remark(title: str, script: Script, seen: Spot) -> Remark:
    also = tuple(one.lineno for one in seen.also)
    told = _worded(title, script, seen.node.lineno, seen.node.col_offset + 1, seen.facts, also)
    return replace(told, other=next((one.lineno for one in seen.also if _is_other(one, seen.node)), 0))


def _is_other(node: Node, place: Node) -> bool:
    """Tell whether a part of a fault stands elsewhere, and is more than the pass or the loop in which a run sees it."""
    call = node.value if isinstance(node, ast.Expr) else node
    event = method_of(call) in _EVENTS
    return node.lineno != place.lineno and not event and not isinstance(node, ast.For | ast.While | ast.FunctionDef)


def _worded(
    title: str, script: Script, line: int, column: int, facts: Mapping[str, str], also: tuple[int, ...] = ()
) -> Remark:
    """Return a remark with the words of its rule."""
    said = words()[title]
    what, advice, remedy = (text.format(**facts) for text in (said.what, said.advice, said.remedy))
    cell, inside = script.place(line)
    return Remark(title, said.severity, script.path, inside, column, what, advice, remedy, cell, also)


def _is_silenced(rule: Rule, program: Program, seen: Spot, comments: list[Silence]) -> bool:
    """Tell whether a comment on a line of the statement silences a rule; note that it did."""
    if not comments:
        return False
    node: ast.expr | ast.stmt = program.statement(seen.node)
    if hasattr(node, "body"):  # of a loop or a class only the part itself, and of these only the first line
        node = seen.node
    last = node.lineno if hasattr(node, "body") else node.end_lineno or node.lineno
    for comment in comments:
        if rule.name in comment.names and node.lineno <= comment.covers <= last:
            comment.used.add(rule.name)
            return True
    return False


def _about(comment: Silence, script: Script, wanted: Collection[str]) -> Iterator[tuple[int, Remark]]:
    """Yield what is wrong with a comment: no reason, a name that no rule has, or nothing to silence."""
    known = names()

    def remark(title: str, **facts: str) -> tuple[int, Remark]:
        return comment.line, _worded(title, script, comment.line, comment.column, facts)

    reason, effect = OF_COMMENTS
    shown = ", ".join(comment.names) or "no rule"
    if name_of(reason) in wanted and not comment.reason:
        yield remark(reason, name=shown)
    if name_of(effect) not in wanted:
        return
    if not comment.names:
        yield remark(effect, name=shown, why="since it names none")
    for name in comment.names:
        if name not in known:
            yield remark(effect, name=name, why="and there is no such rule")
        elif name in wanted and name not in comment.used:
            yield remark(effect, name=name, why="and there is nothing to silence")
