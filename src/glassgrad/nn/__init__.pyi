# ruff: noqa: F403 - the lists of names are those of the families
# Written by tools/stubs.py from `__all__` of each family.
from glassgrad.nn import functional as functional
from glassgrad.nn import init as init
from glassgrad.nn import parallel as parallel
from glassgrad.nn import parameter as parameter
from glassgrad.nn import utils as utils
from glassgrad.nn.activation import *
from glassgrad.nn.attention import *
from glassgrad.nn.cells import *
from glassgrad.nn.containers import *
from glassgrad.nn.conv import *
from glassgrad.nn.distance import *
from glassgrad.nn.dropout import *
from glassgrad.nn.embedding import *
from glassgrad.nn.lazy import *
from glassgrad.nn.linear import *
from glassgrad.nn.losses import *
from glassgrad.nn.module import *
from glassgrad.nn.norm import *
from glassgrad.nn.overview import *
from glassgrad.nn.padding import *
from glassgrad.nn.parallel import *
from glassgrad.nn.parameter import *
from glassgrad.nn.pooling import *
from glassgrad.nn.recurrent import *
from glassgrad.nn.rotary import *
from glassgrad.nn.shape import *
from glassgrad.nn.transformer import *
from glassgrad.nn.upsampling import *
