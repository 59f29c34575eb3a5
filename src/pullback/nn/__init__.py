"""Modules and functions for neural networks."""

from typing import TYPE_CHECKING

import pullback
from pullback.nn import attention as attention
from pullback.nn import common_types as common_types
from pullback.nn import functional as functional
from pullback.nn import grad as grad
from pullback.nn import init as init
from pullback.nn import modules as modules
from pullback.nn import parallel as parallel
from pullback.nn import parameter as parameter
from pullback.nn import utils as utils
from pullback.nn.factory import factory_kwargs as factory_kwargs
from pullback.nn.modules import *
from pullback.nn.parallel import DataParallel as DataParallel
from pullback.nn.parameter import Buffer as Buffer
from pullback.nn.parameter import Parameter as Parameter
from pullback.nn.parameter import UninitializedBuffer as UninitializedBuffer
from pullback.nn.parameter import UninitializedParameter as UninitializedParameter

modules.Module._repr_html_ = pullback._repr_html_

if TYPE_CHECKING:  # a checker that reads `*` above has not read the modules yet: they import this package
    from pullback._stubs.nn import *
