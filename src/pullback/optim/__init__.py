"""Optimizers: each is its update rule."""

from pullback.optim.adam import Adam as Adam
from pullback.optim.adam import AdamW as AdamW
from pullback.optim.adam_relatives import Adamax as Adamax
from pullback.optim.adam_relatives import NAdam as NAdam
from pullback.optim.adam_relatives import RAdam as RAdam
from pullback.optim.averaged import ASGD as ASGD
from pullback.optim.averaged import Rprop as Rprop
from pullback.optim.lbfgs import LBFGS as LBFGS
from pullback.optim.matrix import Adafactor as Adafactor
from pullback.optim.matrix import Muon as Muon
from pullback.optim.optimizer import Optimizer as Optimizer
from pullback.optim.scaled import Adadelta as Adadelta
from pullback.optim.scaled import Adagrad as Adagrad
from pullback.optim.scaled import RMSprop as RMSprop
from pullback.optim.sgd import SGD as SGD
