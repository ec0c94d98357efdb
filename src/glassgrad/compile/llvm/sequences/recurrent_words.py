"""The record of a share of a recurrent layer, apart from what writes its code, which few processes need."""

from __future__ import annotations

VECTORS = 2  # of a packed panel

# Arrays as objects. The forward pass makes gates, y, cells and the last states hn and cn of a, h0 and c0. The backward
# pass reads dy, and hn and cn are the cotangents of the last states; it makes those of what is multiplied with the
# weights, which are a's but for GRU (dhidden), and those of the first states.
ARRAYS = ("a", "gates", "y", "cells", "h0", "c0", "hn", "cn", "bias", "w", "dy", "dhidden", "dh0", "dc0")
# Sizes, and how far apart the steps and the rows of an array lie, in positions; the part of this share.
NUMBERS = ("steps", "batch", "hidden", "step_at", "row_at", "row_first", "row_last", "block_first", "block_last")
# Whether the sequence is read from its end, and whether there are a bias, and cotangents of y and of the last states.
FLAGS = ("reverse", "biased", "has_dy", "has_dh", "has_dc")
# The next turn of the share (0 packs its part of the weights), how many steps are in a turn, how many there are in all,
# the blocks to pack, and where in the memory the states and this share's own part begin, in elements.
ENTRY = ("turn", "each", "turns", "pack_first", "pack_last", "states_at", "scratch_at")

WORDS = {name: at for at, name in enumerate((*ARRAYS, "memory", *NUMBERS, *FLAGS, *ENTRY))}
