# ruff: noqa: F403 - the lists of names are those of the families
# Written by tools/stubs.py from `__all__` of each family.
from glassgrad.nn.functional_activation import *
from glassgrad.nn.functional_attention import *
from glassgrad.nn.functional_classes import *
from glassgrad.nn.functional_conv import *
from glassgrad.nn.functional_ctc import *
from glassgrad.nn.functional_distance import *
from glassgrad.nn.functional_dropout import *
from glassgrad.nn.functional_losses import *
from glassgrad.nn.functional_norm import *
from glassgrad.nn.functional_products import *
from glassgrad.ops.arrange import pad as pad
from glassgrad.ops.index import one_hot as one_hot
