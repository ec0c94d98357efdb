# ruff: noqa: F403 - the lists of names are those of the families
# Written by tools/stubs.py from `__all__` of each family.
from glassgrad.optim import lr_scheduler as lr_scheduler
from glassgrad.optim import swa_utils as swa_utils
from glassgrad.optim.accumulate import *
from glassgrad.optim.adadelta import *
from glassgrad.optim.adafactor import *
from glassgrad.optim.adagrad import *
from glassgrad.optim.adam import *
from glassgrad.optim.adamax import *
from glassgrad.optim.asgd import *
from glassgrad.optim.ema import *
from glassgrad.optim.lbfgs import *
from glassgrad.optim.lion import *
from glassgrad.optim.muon import *
from glassgrad.optim.nadam import *
from glassgrad.optim.optimizer import *
from glassgrad.optim.radam import *
from glassgrad.optim.rmsprop import *
from glassgrad.optim.rprop import *
from glassgrad.optim.sgd import *
from glassgrad.optim.sparse_adam import *
