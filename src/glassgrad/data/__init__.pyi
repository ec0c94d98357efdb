# Written by tools/stubs.py from the lists of public names.
from glassgrad.data.batches import EpochBatches as EpochBatches
from glassgrad.data.batches import RandomBatches as RandomBatches
from glassgrad.data.idx import read_idx as read_idx
from glassgrad.data.images import ImageData as ImageData
from glassgrad.data.images import read_mnist as read_mnist
from glassgrad.data.images import shipped_digits as shipped_digits
from glassgrad.data.names import Examples as Examples
from glassgrad.data.names import NamesData as NamesData
from glassgrad.data.names import split_words as split_words
from glassgrad.data.ready import digits as digits
from glassgrad.data.ready import mnist as mnist
from glassgrad.data.tokenizer import CharTokenizer as CharTokenizer
from glassgrad.data.words import WordList as WordList
from glassgrad.data.words import read_words as read_words
from glassgrad.data.words import shipped_words as shipped_words
