"""Schedulers: how the learning rate changes while training."""

from pullback.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from pullback.optim.lr_scheduler.base import LRScheduler as LRScheduler
from pullback.optim.lr_scheduler.base import _LRScheduler as _LRScheduler
from pullback.optim.lr_scheduler.combined import ChainedScheduler as ChainedScheduler
from pullback.optim.lr_scheduler.combined import ReduceLROnPlateau as ReduceLROnPlateau
from pullback.optim.lr_scheduler.combined import SequentialLR as SequentialLR
from pullback.optim.lr_scheduler.cyclic import CyclicLR as CyclicLR
from pullback.optim.lr_scheduler.cyclic import OneCycleLR as OneCycleLR
from pullback.optim.lr_scheduler.simple import ConstantLR as ConstantLR
from pullback.optim.lr_scheduler.simple import CosineAnnealingLR as CosineAnnealingLR
from pullback.optim.lr_scheduler.simple import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from pullback.optim.lr_scheduler.simple import ExponentialLR as ExponentialLR
from pullback.optim.lr_scheduler.simple import LambdaLR as LambdaLR
from pullback.optim.lr_scheduler.simple import LinearLR as LinearLR
from pullback.optim.lr_scheduler.simple import MultiplicativeLR as MultiplicativeLR
from pullback.optim.lr_scheduler.simple import MultiStepLR as MultiStepLR
from pullback.optim.lr_scheduler.simple import PolynomialLR as PolynomialLR
from pullback.optim.lr_scheduler.simple import StepLR as StepLR
