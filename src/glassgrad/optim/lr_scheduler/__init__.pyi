# Written by tools/stubs.py from the lists of public names.
from glassgrad.optim.lr_scheduler.base import LRScheduler as LRScheduler
from glassgrad.optim.lr_scheduler.base import LambdaLR as LambdaLR
from glassgrad.optim.lr_scheduler.base import MultiplicativeLR as MultiplicativeLR
from glassgrad.optim.lr_scheduler.composed import ChainedScheduler as ChainedScheduler
from glassgrad.optim.lr_scheduler.composed import SequentialLR as SequentialLR
from glassgrad.optim.lr_scheduler.cosine import CosineAnnealingLR as CosineAnnealingLR
from glassgrad.optim.lr_scheduler.cosine import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from glassgrad.optim.lr_scheduler.cosine import WarmupCosineLR as WarmupCosineLR
from glassgrad.optim.lr_scheduler.cyclic import CyclicLR as CyclicLR
from glassgrad.optim.lr_scheduler.cyclic import OneCycleLR as OneCycleLR
from glassgrad.optim.lr_scheduler.decay import ConstantLR as ConstantLR
from glassgrad.optim.lr_scheduler.decay import ExponentialLR as ExponentialLR
from glassgrad.optim.lr_scheduler.decay import LinearLR as LinearLR
from glassgrad.optim.lr_scheduler.decay import MultiStepLR as MultiStepLR
from glassgrad.optim.lr_scheduler.decay import PolynomialLR as PolynomialLR
from glassgrad.optim.lr_scheduler.decay import StepLR as StepLR
from glassgrad.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau
