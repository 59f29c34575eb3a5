"""Modules and functions for neural networks."""

from pullback.nn import functional, init, modules, parameter
from pullback.nn.modules import *
from pullback.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
