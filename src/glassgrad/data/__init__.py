"""Data sets, tokenizers and batches.

Files or names of data sets go in, NumPy arrays come out. `names.py`, `text.py`, `images.py`, `own_digits.py` and
`plane.py` are data sets, `words.py`, `idx.py`, `pictures.py` and `numpy_files.py` read files, `download.py` fetches
them, `batches.py` draws batches, `generate.py` samples tokens, `atomic.py` replaces files whole.

Example:
    >>> from glassgrad.data import NamesData, read_words, shipped_words
    >>> data = NamesData.build(read_words(shipped_words()), context=3)
    >>> data.train.inputs.shape[1], data.tokenizer.size
    (3, 27)
"""

from __future__ import annotations

from glassgrad.base import documents
from glassgrad.data.batches import EpochBatches, RandomBatches
from glassgrad.data.idx import read_idx
from glassgrad.data.images import ImageData, read_mnist, shipped_digits
from glassgrad.data.names import Examples, NamesData, split_words
from glassgrad.data.ready import digits, mnist
from glassgrad.data.tokenizer import CharTokenizer
from glassgrad.data.words import WordList, read_words, shipped_words
from glassgrad.errors.missing import lister

__all__ = [
    "CharTokenizer",
    "EpochBatches",
    "Examples",
    "ImageData",
    "NamesData",
    "RandomBatches",
    "WordList",
    "digits",
    "mnist",
    "read_idx",
    "read_mnist",
    "read_words",
    "shipped_digits",
    "shipped_words",
    "split_words",
]
__dir__ = lister(__name__)
documents.complete_all(__name__, globals())
