"""The layers of torch.nn, one family per file; each file is the list of its own names."""

from pullback.nn.modules import (
    activation,
    container,
    distance,
    flatten,
    linear,
    loss,
    margin_loss,
    parameter_container,
    pooling,
)
from pullback.nn.modules.activation import *
from pullback.nn.modules.container import *
from pullback.nn.modules.distance import *
from pullback.nn.modules.flatten import *
from pullback.nn.modules.linear import *
from pullback.nn.modules.loss import *
from pullback.nn.modules.margin_loss import *
from pullback.nn.modules.module import Module
from pullback.nn.modules.parameter_container import *
from pullback.nn.modules.pooling import *

__all__ = [
    "Module",
    *activation.__all__,
    *container.__all__,
    *distance.__all__,
    *flatten.__all__,
    *linear.__all__,
    *loss.__all__,
    *margin_loss.__all__,
    *parameter_container.__all__,
    *pooling.__all__,
]
