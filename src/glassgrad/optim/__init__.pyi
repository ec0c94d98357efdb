# ruff: noqa: F401, PLR0402 - the form that mypy accepts for a submodule in its own package
# What a type checker sees: the same names, loaded at once.
import glassgrad.optim.lr_scheduler as lr_scheduler
import glassgrad.optim.swa_utils as swa_utils
from glassgrad.optim.accumulate import GradientAccumulator as GradientAccumulator
from glassgrad.optim.adadelta import Adadelta as Adadelta
from glassgrad.optim.adafactor import Adafactor as Adafactor
from glassgrad.optim.adagrad import Adagrad as Adagrad
from glassgrad.optim.adam import Adam as Adam
from glassgrad.optim.adam import AdamW as AdamW
from glassgrad.optim.adamax import Adamax as Adamax
from glassgrad.optim.ema import EMA as EMA
from glassgrad.optim.lbfgs import LBFGS as LBFGS
from glassgrad.optim.lion import Lion as Lion
from glassgrad.optim.muon import Muon as Muon
from glassgrad.optim.nadam import NAdam as NAdam
from glassgrad.optim.optimizer import Optimizer as Optimizer
from glassgrad.optim.radam import RAdam as RAdam
from glassgrad.optim.rmsprop import RMSprop as RMSprop
from glassgrad.optim.sgd import SGD as SGD
