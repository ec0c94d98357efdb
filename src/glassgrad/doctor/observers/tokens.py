"""Detect padding that the loss reaches, and models whose outputs depend on tokens that are their targets."""

from __future__ import annotations

import sys

import numpy as np

from glassgrad.doctor import library
from glassgrad.doctor.graphs.graph import Labels
from glassgrad.doctor.library import Args, Array, Module, Tensor
from glassgrad.doctor.observers.entering.breaking import first_line
from glassgrad.doctor.parts import Padding
from glassgrad.doctor.restoring.set_aside import aside

_ENOUGH = 3
"""The number of passes that are looked at; two of them must agree."""
_PADDED, _ELSEWHERE, _LENGTHS = 0.3, 0.02, 3
"""The share of sequences that end in the filler, its share elsewhere, and the number of lengths that tell padding."""
_ORDERED = 0.9
"""The share of sequences that rise or fall throughout, above which their order makes their ends."""
_SEGMENTS = 3
"""The number of segments that sequences are marked with, at most."""
_INVERTED = 3.0
"""The gradient at a filler relative to that at a word, above which the mask keeps the filler."""
_SHORTEST, _FEWEST, _MOST = 5, 8, 8
_SHIFTED, _FAR = 0.98, 1e-4


def padding_of(ids: Array) -> tuple[Array, int] | None:
    """Return the places of the filler at the ends of sequences (n, length), and the filler; None if there is none.

    Example:
        >>> ids = np.array([[3, 1, 0, 0, 0], [2, 5, 4, 0, 0], [1, 1, 3, 2, 0], [4, 2, 1, 3, 5]] * 2)
        >>> places, filler = padding_of(ids)
        >>> places.sum(1).tolist(), filler
        ([3, 2, 1, 0, 3, 2, 1, 0], 0)
    """
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or len(ids) < _FEWEST or ids.shape[1] < _SHORTEST:
        return None
    values, counts = np.unique(ids[:, -1], return_counts=True)
    filler = int(values[counts.argmax()])
    places = np.cumprod((ids == filler)[:, ::-1], axis=1)[:, ::-1].astype(bool)
    lengths = places.sum(1)
    elsewhere = ((ids == filler) & ~places).sum()
    if np.mean(lengths > 0) < _PADDED or len(np.unique(lengths)) < _LENGTHS or elsewhere > _ELSEWHERE * ids.size:
        return None
    return None if _is_ordered(ids, lengths) else (places, filler)


def _is_ordered(ids: Array, lengths: Array) -> bool:
    """Tell whether rows rise or fall to their ends: sorted numbers, segments and clipped distances end in one, too.

    Their first places may hold a mark of the beginning. A mark of the end before the filler, the same in all rows,
    tells padding, whatever stands before it.

    Example:
        >>> ids = np.array([[1, 9, 7, 3, 3], [1, 8, 3, 3, 3], [1, 6, 5, 4, 3]])
        >>> _is_ordered(ids, np.array([2, 3, 1])), _is_ordered(ids[:, [0, 2, 1, 3]], np.array([1, 1, 1]))
        (True, False)
    """
    ends = [(row, length) for row, length in zip(ids, lengths, strict=True) if 0 < length < ids.shape[1] - 1]
    marks = {int(row[-length - 1]) for row, length in ends}
    if not ends or (len(marks) == 1 and len(np.unique(ids)) > _SEGMENTS):
        return False
    steps = [np.diff(row[1:]) for row, _ in ends]
    return any(np.mean([(sign * one >= 0).all() for one in steps]) > _ORDERED for sign in (1, -1))


def _between(padding: Array) -> Array:
    """Return the places of padding in rows that have other tokens on both sides of it."""
    before = np.cumsum(~padding[:, ::-1], axis=1)[:, ::-1] > 0
    after = np.cumsum(~padding, axis=1) > 0
    between: Array = padding & before & after
    return between


class Tokens:
    """Looks at the embeddings of the first sampled passes, between the calls of `end_pass`."""

    def __init__(self) -> None:
        self._passes = self._reached = self._counted = self._inverted = 0
        self._name, self._filler, self._by_index = "", 0, False
        self._ids: Array | None = None
        self._entered: list[Array] = []
        self._read: Array | None = None
        self._places: Array | None = None
        self._in_pass = False
        self._shifted = self._same_place = False
        self._inner: dict[str, tuple[int, int]] = {}
        self._single: dict[tuple[str, int], list[Array]] = {}
        self.leaks: bool | None = None
        self.leaks_at = ""
        self.repeats = False
        self.twice = 0

    def look(self, name: str, kind: str, module: Module, args: Args, result: Tensor) -> None:
        """Look at the tokens that enter an embedding, and ask where its gradient arrives."""
        if kind != "Embedding" or self._passes >= _ENOUGH or not result.requires_grad:
            return
        ids = library.numbers(library.first_tensor(args))
        if ids is not None and ids.dtype.kind in "iu":
            self._look_for_pads(name, ids, getattr(module, "padding_idx", None))
        if ids is None or ids.ndim != 2 or ids.dtype.kind not in "iu" or len(ids) < 2:
            return
        self._entered.append(ids)
        if self._ids is None or ids.size > self._ids.size:
            self._ids = ids
        found = padding_of(ids)
        if found is not None and self._places is None:
            self._places, self._filler = found
            self._name, self._by_index = name, getattr(module, "padding_idx", None) == self._filler
            result.register_hook(lambda g: self._arrived(library.numbers(g)))

    def _look_for_pads(self, name: str, ids: Array, index: int | None) -> None:
        """Look whether the padding index is a token: alone, or before another one in its sequence."""
        if index is None or ids.size < _FEWEST:
            return
        padding = ids == index
        if ids.ndim != 2 or ids.shape[1] < 2:
            self._single.setdefault((name, index), []).append(padding.reshape(-1))
            return
        between = _between(padding)
        if len(ids) > 2:  # the sequences may be its columns; columns of two have nothing between
            between &= _between(padding.T).T
        self._note_pads(name, index, between)

    def _note_pads(self, name: str, index: int, padding: Array) -> None:
        _, found = self._inner.get(name, (index, 0))
        self._inner[name] = index, found + bool(padding.mean() > _ELSEWHERE)

    def _end_single(self) -> None:
        """Look at the calls with one token of each example: several calls in a pass are the steps of sequences."""
        for (name, index), steps in self._single.items():
            padding = np.concatenate(steps)
            if len(steps) > 2 and len({len(one) for one in steps}) == 1:
                between = _between(np.stack(steps, 1))
                # A decoder that is fed its own guesses may guess the padding as well.
                padding = between if 4 * between.sum() > padding.sum() else np.zeros(1, bool)
            self._note_pads(name, index, padding)
        self._single.clear()

    def pads(self) -> tuple[str, int] | None:
        """Return an embedding whose padding index comes among the other tokens in two passes, and the index."""
        return next(((name, index) for name, (index, passes) in self._inner.items() if passes > 1), None)

    def _arrived(self, g: Array | None) -> None:
        if g is not None and self._places is not None and g.shape[:2] == self._places.shape:
            self._in_pass |= bool(g[self._places].any())
            sizes = np.abs(g).reshape(*g.shape[:2], -1).mean(2)
            filler, words = float(sizes[self._places].mean()), float(sizes[~self._places].mean())
            self._inverted += filler > _INVERTED * words

    def learns(self, labels: Labels) -> None:
        """Compare the class numbers of the loss with the tokens of the pass."""
        if self._ids is None or labels.values is None:
            return
        rows, length = self._ids.shape
        self._shifted = self._same_place = False
        if labels.count == rows * (length - 1) and length > _SHORTEST:
            self._look_for_two(labels.values, self._ids)
        for ids in self._entered[:_MOST]:  # of an encoder and a decoder, those of the decoder may be fewer
            if ids.size == labels.count:
                self._compare(labels.values, ids)
        if self._places is not None and labels.count == self._ids.size:
            padded = self._places.reshape(-1)[: len(labels.values)]
            self._counted += bool(padded.any() and (labels.values[padded] == self._filler).all())

    def _compare(self, values: Array, ids: Array) -> None:
        """Look whether the targets are the next tokens, or those at the same places."""
        length = ids.shape[1]
        rows = len(values) // length
        if self._shifted or self._same_place or not rows or length < _SHORTEST:
            return
        known, entering = values[: rows * length].reshape(rows, length), ids[:rows]
        alike = np.mean(known[:, :-1] == entering[:, 1:])
        various = np.mean(entering[:, 1:] == entering[:, :-1]) < alike / 2
        self._shifted = bool(alike > _SHIFTED and various)
        self._same_place = bool(np.mean(known == entering) > _SHIFTED and np.mean(np.diff(entering) != 0) > _PADDED)
        self._read = ids

    def _look_for_two(self, values: Array, ids: Array) -> None:
        """Look whether the target of each place but the last is the token two places ahead."""
        ahead = ids.shape[1] - 1
        rows = len(values) // ahead
        known, entering = values[: rows * ahead].reshape(rows, ahead), ids[:rows]
        if rows > 1:
            two, one = np.mean(known[:, :-1] == entering[:, 2:]), np.mean(known == entering[:, 1:])
            self.twice += bool(two > _SHIFTED and one < _SHIFTED / 2)

    def end_pass(self) -> None:
        """Count a pass with tokens."""
        self._end_single()
        self._reached += self._in_pass
        self._passes += self._ids is not None
        self._ids, self._places, self._in_pass = None, None, False
        self._entered.clear()

    @property
    def asks(self) -> bool:
        """Whether the targets are the next tokens of the inputs, so that `ask` should look for a leak."""
        return (self._shifted or self._same_place) and self.leaks is None

    def ask(self, model: Module, args: Args) -> None:
        """Look whether the outputs at the first places change with the tokens at the last ones. Restores the model."""
        self.leaks = False
        given = [library.numbers(one) if library.is_tensor(one) else None for one in args]
        read = self._read if self._read is not None else np.zeros(0)
        same = [at for at, one in enumerate(given) if one is not None and np.array_equal(one, read)]
        place = same[0] if same else 0
        entering = given[place] if given else None
        if entering is None or entering.ndim != 2 or entering.dtype.kind not in "iu":
            return
        middle = entering.shape[1] // 2
        changed = entering.copy()
        changed[:, middle:] = np.roll(entering, 1, axis=0)[:, middle:]
        torch = library.is_torch(args[place])

        def run(ids: Array) -> Array | None:
            output = model(*args[:place], library.tensor_of(ids.copy(), torch), *args[place + 1 :])
            return library.numbers(library.first_tensor(output))

        with aside(model), sys.modules["torch" if torch else "glassgrad"].no_grad():
            model.eval()
            before, after = run(entering), run(changed)
        if before is None or after is None or before.size % entering.size or before.shape != after.shape:
            return
        if before.ndim == 3 and before.shape[1] != entering.shape[1] == before.shape[2]:  # classes before places
            before, after = before.swapaxes(1, 2), after.swapaxes(1, 2)
        one, other = (each.reshape(*entering.shape, -1)[:, :middle] for each in (before, after))
        changes = bool(np.abs(one - other).max() > _FAR * max(float(np.abs(one).max()), 1e-30))
        self.leaks = changes and not self._same_place
        if self.leaks:
            with aside(model), sys.modules["torch" if torch else "glassgrad"].no_grad():
                model.eval()
                self.leaks_at = first_line(run, entering, [changed], 1)
        self.repeats = self._same_place and not changes

    def found(self) -> Padding | None:
        """Return the padding that the loss reaches, if it did so in at least two passes and in all with padding."""
        if self._reached < 2:
            return None
        return Padding(self._name, self._filler, self._by_index, self._counted >= 2, self._inverted >= 2)
