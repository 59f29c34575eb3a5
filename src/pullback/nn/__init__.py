"""Modules and functions for neural networks."""

import pullback
from pullback.nn import (
    attention,
    common_types,
    functional,
    grad,
    init,
    modules,
    parallel,
    parameter,
    utils,
)
from pullback.nn.factory import factory_kwargs
from pullback.nn.modules import *
from pullback.nn.parallel import DataParallel
from pullback.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

modules.Module._repr_html_ = pullback._repr_html_
