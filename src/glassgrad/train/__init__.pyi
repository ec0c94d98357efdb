# ruff: noqa: F403 - the lists of names are those of the families
# Written by tools/stubs.py from `__all__` of each family.
from glassgrad.train.callbacks import *
from glassgrad.train.config import *
from glassgrad.train.kept.keeping import *
from glassgrad.train.kept.loggers import *
from glassgrad.train.kept.metrics import *
from glassgrad.train.kept.randomness import *
from glassgrad.train.kept.rundir import *
from glassgrad.train.kept.weights import *
from glassgrad.train.loop import *
from glassgrad.train.meters import *
from glassgrad.train.rate_finder import *
from glassgrad.train.show.monitoring import *
from glassgrad.train.show.run_page import *
from glassgrad.train.signals import *
from glassgrad.train.stopping import *
from glassgrad.train.task import *
from glassgrad.train.trainer import *
from glassgrad.train.training_config import *
