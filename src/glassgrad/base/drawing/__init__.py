"""Graphs of computations as pictures; data, layout and appearance are in separate files."""

from __future__ import annotations

from glassgrad.base.drawing.graph import Edge, Graph, Node, Numbers, Sweep, numbers_of
from glassgrad.base.drawing.picture import Drawing

__all__ = ["Drawing", "Edge", "Graph", "Node", "Numbers", "Sweep", "numbers_of"]
