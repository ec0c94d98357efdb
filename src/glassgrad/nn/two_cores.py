"""Large weights drawn on two cores: the numbers, and the generator's state afterwards, are those of one.

Most of the time goes into memory that nobody has touched, and two cores are given it at once. PCG64 can go any number
of turns forward at once; each turn gives two words of 32 bits, and a float32 number takes one of them, or, if it is a
normal one, sometimes more (Marsaglia and Tsang 2000, "The ziggurat method for generating random variables").
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from glassgrad.engine.tensors import devices

MANY = 1 << 19  # numbers that take at least ten times as long as starting a thread
_SOME = 1 << 15  # numbers that stay in the nearest caches meanwhile
# Mean and deviation of the number of words that a normal number takes; wrong values cost only time.
WORDS, _DEVIATION = 1.02205, 0.195
_TRIES = 32  # numbers after which two readers of the same words certainly read the same numbers
_MULTIPLIER, _MODULUS = 0x2360ED051FC65DA44385DF649FCCF645, 1 << 128  # of PCG64: the next state is this one times ...


def serve(array: np.ndarray, rng: np.random.Generator) -> bool:
    """Tell whether an array is to be drawn on two cores."""
    large = array.size >= MANY and array.dtype == np.float32
    return large and type(rng.bit_generator) is np.random.PCG64 and _are_there()


def _are_there() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores // devices.sharers > 1


def draw_into(flat: np.ndarray, draw: Callable[..., np.ndarray], shift: float, scale: float) -> None:
    """Fill with `shift` + `scale` times what is drawn, some numbers after the other."""
    for start in range(0, flat.size, _SOME):
        some = flat[start : start + _SOME]
        draw(out=some, dtype=some.dtype.type)
        some *= scale
        some += shift


def uniform(flat: np.ndarray, rng: np.random.Generator, shift: float, scale: float) -> None:
    """Fill with uniform float32 numbers, each of which takes a word."""
    if rng.bit_generator.state["has_uint32"]:  # a word is left over from the last draw
        draw_into(flat[:1], rng.random, shift, scale)
        flat = flat[1:]
    half = flat.size // 4 * 2
    ahead = _ahead(rng, half // 2)
    second = threading.Thread(target=draw_into, args=(flat[half:], ahead.random, shift, scale))
    second.start()
    try:
        draw_into(flat[:half], rng.random, shift, scale)
    finally:
        second.join()
    rng.bit_generator.state = ahead.bit_generator.state


def normal(flat: np.ndarray, rng: np.random.Generator, shift: float, scale: float) -> None:
    """Fill with normal float32 numbers.

    The second half begins at a word that is guessed. Where both readers come to the same word, the first one may stop:
    what follows is what the second one has read, though perhaps some places further on.
    """
    half = flat.size // 2
    spare = int(8 * _DEVIATION * math.sqrt(flat.size)) + _TRIES
    ahead, begin = _ahead(rng, int(half * WORDS / 2)), half + spare
    goal = ahead.bit_generator.state
    states: dict[tuple[int, int], int] = {}  # of the second reader after its first numbers, and how many these are
    second = threading.Thread(target=_read_on, args=(flat[begin:], ahead, states, shift, scale))
    second.start()
    try:
        met = _read_until(flat[:begin], rng, goal, states, second, shift, scale)
    finally:
        second.join()
    if met is None:  # the guess was wrong
        draw_into(flat[begin:], rng.standard_normal, shift, scale)
        return
    at, skipped = met
    _move(flat, at, begin + skipped)
    rng.bit_generator.state = ahead.bit_generator.state
    draw_into(flat[flat.size - (begin + skipped - at) :], rng.standard_normal, shift, scale)


def _ahead(rng: np.random.Generator, turns: int) -> np.random.Generator:
    """Return a generator that is advanced by `turns`."""
    ahead = np.random.PCG64()
    state: Any = rng.bit_generator.state
    ahead.state = state
    ahead.advance(turns)
    return np.random.Generator(ahead)


def _read_on(
    flat: np.ndarray, ahead: np.random.Generator, states: dict[tuple[int, int], int], shift: float, scale: float
) -> None:
    for count in range(min(_TRIES, flat.size)):
        states[_place(ahead)] = count
        draw_into(flat[count : count + 1], ahead.standard_normal, shift, scale)
    draw_into(flat[_TRIES:], ahead.standard_normal, shift, scale)


def _read_until(
    flat: np.ndarray,
    rng: np.random.Generator,
    goal: Mapping[str, Any],
    states: dict[tuple[int, int], int],
    second: threading.Thread,
    shift: float,
    scale: float,
) -> tuple[int, int] | None:
    """Fill with numbers up to a word that the second reader came to; return how many they are, and it had read by then.

    Returns None where all of `flat` is full before.
    """
    at = 0
    while (words := _words_between(rng, goal)) > 2 * _TRIES and at < flat.size:
        # A few less than would end at the goal, most likely; each takes a word at least.
        count = min(int((words - 8 * _DEVIATION * math.sqrt(words)) / WORDS), words - _TRIES, flat.size - at)
        count = max(count, _TRIES)
        draw_into(flat[at : at + count], rng.standard_normal, shift, scale)
        at += count
    while len(states) < _TRIES and second.is_alive():
        second.join(1e-4)
    for place in range(at, min(at + 4 * _TRIES, flat.size)):
        if (skipped := states.get(_place(rng))) is not None:
            return place, skipped
        draw_into(flat[place : place + 1], rng.standard_normal, shift, scale)
        at = place + 1
    draw_into(flat[at:], rng.standard_normal, shift, scale)
    return None


def _place(rng: np.random.Generator) -> tuple[int, int]:
    state = rng.bit_generator.state
    return state["state"]["state"], state["has_uint32"]


def _words_between(rng: np.random.Generator, goal: Mapping[str, Any]) -> int:
    """Return how many words lie before a later state; a number without bounds where it is no later one.

    As in O'Neill's PCG library: the lowest bit that differs says whether this power of two is among the turns.
    """
    state = rng.bit_generator.state
    now, then = state["state"]["state"], goal["state"]["state"]
    times, plus, bit, turns = _MULTIPLIER, state["state"]["inc"], 1, 0
    while now != then:
        if (now ^ then) & bit:
            now = (now * times + plus) % _MODULUS
            turns |= bit
        bit *= 2
        times, plus = times * times % _MODULUS, (times + 1) * plus % _MODULUS
    return 2 * turns + int(state["has_uint32"])


def _move(flat: np.ndarray, to: int, start: int) -> None:
    """Move what begins at `start` to an earlier place; NumPy would copy it to other memory first."""
    size = flat.itemsize
    ctypes.memmove(flat.ctypes.data + to * size, flat.ctypes.data + start * size, (flat.size - start) * size)
