"""Graphs of computations as pictures: the data, where the boxes stand, and how they look, in files of their own."""

from __future__ import annotations

from glassgrad.base.drawing.graph import Edge, Graph, Node, Numbers, Sweep, numbers_of
from glassgrad.base.drawing.picture import Drawing

__all__ = ["Drawing", "Edge", "Graph", "Node", "Numbers", "Sweep", "numbers_of"]
