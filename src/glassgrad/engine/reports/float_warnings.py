"""Report NumPy's floating-point warnings at the user's line.

NumPy warns at the line that calls it, which is one of ours. Nothing is done until a warning is about to be shown: a
warning from one of our files is then sent on to the user's line, through the user's own filters. In a backward pass
NumPy warns of an invalid value when 0 meets an infinite slope: the rule is evaluated again, and if its cotangent is 0,
as in a branch that `where` did not take, the warning says so. Compiled functions report only this case: they
count such cotangents (see `compile.front.hidden_branch`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np

from glassgrad import errors
from glassgrad.base import provenance
from glassgrad.engine import tape
from glassgrad.engine.node import Node
from glassgrad.engine.tensor import Tensor
from glassgrad.engine.walks import plain_walk
from glassgrad.ops.core import Array

_TOLD: set[tuple[str, int]] = set()
"""The lines whose hidden branches were reported. One report is enough: a line has several ops and runs in each step."""
_COMPILED = frozenset({"compiled", "compiled_several"})
"""Ops that count such cotangents themselves, and whose programs hold a lock while they run."""
_FAR = 40
"""The largest number of frames that are searched for a backward pass."""


def forget() -> None:
    """Forget which lines have been reported, so that each is reported again."""
    _TOLD.clear()


def _show(message: Any) -> None:
    """Show a warning; NumPy's floating-point warnings are shown at the user's line."""
    frame = sys._getframe(1)
    if message.category is not RuntimeWarning or not _is_ours(frame, message):
        _before(message)
        return
    # Python counted it as shown at our line, but the next one there may come from another line of the user's.
    frame.f_globals.get("__warningregistry__", {}).clear()
    text = str(message.message)
    getattr(warnings, "onceregistry", {}).pop((text, RuntimeWarning), None)
    from glassgrad.engine.reports.nonfinite import ALLOWED  # not imported in programs without warnings

    if ALLOWED.depth:  # inside `allow_nonfinite` it is intended
        return
    user = provenance.user_frame()
    walk = _walk(frame)
    told = None if walk is None else _trap(*walk)
    where, line = user.f_code.co_filename, user.f_lineno
    if told is not None and walk is not None:
        place = walk[0].place
        where, line, text = place.file, place.line, told
        if (where, line) in _TOLD:
            return
    warnings.warn_explicit(
        text,
        errors.HiddenBranchWarning if told is not None else RuntimeWarning,
        where,
        line,
        module=user.f_globals.get("__name__"),
        registry=user.f_globals.setdefault("__warningregistry__", {}),
    )
    if told is not None:  # no filter made it an error, which the next step would have to raise again
        _TOLD.add((where, line))


def _is_ours(frame: FrameType, message: Any) -> bool:
    file = frame.f_code.co_filename
    return message.filename == file and provenance.is_internal(file) and file.startswith(provenance.PACKAGE)


def _walk(frame: FrameType | None) -> tuple[Node, Any] | None:
    """Return the node whose rule is running, and its cotangent; None outside of a backward pass."""
    for _ in range(_FAR):
        if frame is None:
            return None
        if frame.f_code is plain_walk.run_plain.__code__:
            return plain_walk.current(frame)
        if frame.f_code is tape.Walk.apply_rules.__code__:  # with create_graph, or with an observer
            g = frame.f_locals["g"]
            return frame.f_locals["node"], g.array if isinstance(g, Tensor) else g
        frame = frame.f_back
    return None


def _trap(node: Node, g: Array) -> str | None:
    """Return the message that a rule makes a NaN from a cotangent of 0; None if it does not."""
    if type(node.saved) is not tuple or not isinstance(g, np.ndarray) or node.prim.name in _COMPILED:
        return None
    from glassgrad.engine.reports.nonfinite import first_bad, place_in  # as above

    for c in _cotangents(node, g):
        if c.dtype.kind not in "fV" or c.shape != g.shape:
            continue
        bad = np.isnan(c) & (g == 0)
        if bad.any():
            index, count = first_bad(np.where(bad, c, 0))
            first = f", the first at {place_in(index)}"
            return errors.HIDDEN_BRANCH.text(op=node.name, source=node.place.source, places=_places(count), first=first)
    return None


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count:,} places"


def hidden_branch(op: str, place: provenance.Place, count: int) -> None:
    """Warn of a hidden branch that a compiled step has counted: once per line, as in eager mode."""
    if (place.file, place.line) in _TOLD or np.geterr()["invalid"] == "ignore":
        return
    text = errors.HIDDEN_BRANCH.text(op=op, source=place.source, places=_places(count), first="")
    user = provenance.user_frame().f_globals
    registry = user.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        text, errors.HiddenBranchWarning, place.file, place.line, module=user.get("__name__"), registry=registry
    )
    _TOLD.add((place.file, place.line))


def _cotangents(node: Node, g: Array) -> Iterator[Array]:
    """Compute again, without a warning, the cotangents that a node's rules send to its parents."""
    prim, parents, saved = node.prim, node.parents, node.saved
    with np.errstate(all="ignore"):
        if prim.vjps is not None:
            rules = zip(prim.vjps, parents, strict=False)
            found = [rule(g, *saved, **node.params) for rule, parent in rules if rule and parent is not None]
        elif prim.joint_vjp is not None and prim.visit is None:
            found = list(prim.joint_vjp(g, [parent is not None for parent in parents], *saved, **node.params))
        else:
            found = []
    for c in found:
        if c is not None:
            yield np.asarray(c)


_shown_by: Any = getattr(warnings, "_showwarnmsg", None)
# If this module is reloaded, it finds its earlier version there.
_before: Any = getattr(_shown_by, "before", _shown_by)

if _before is not None:
    vars(_show)["before"] = _before
    warnings._showwarnmsg = _show  # type: ignore[attr-defined]  # the one place that every warning passes
