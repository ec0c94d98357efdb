"""Find the bug: twelve broken loops.

Mend twelve training loops, none of which raises an error. The doctor judges them.
"""

# These are the loops of the lesson. Mend each of them where it is broken, and leave the rest as it is: the data, the
# number of steps, and the `watch` block, which the judge needs. A mended loop returns a loss of 0.3 to 0.8.

import warnings
from functools import partial

import numpy as np

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.nn import functional as F

warnings.simplefilter("ignore")  # no hints from there
# From the lesson: rng, points, labels, X, LABELS, batches, classifier, ended, watched, healthy
# From the lesson: loop_1, loop_2, loop_3, loop_4, loop_5, loop_6, loop_7, loop_8, loop_9, loop_10, loop_11, loop_12
