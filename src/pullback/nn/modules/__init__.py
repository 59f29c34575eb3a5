"""The layers of torch.nn, one family per file; each file is the list of its own names."""

from pullback.nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy_conv,
    linear,
    linear_cross_entropy,
    loss,
    margin_loss,
    normalization,
    padding,
    parameter_container,
    pixelshuffle,
    pooling,
    rnn,
    rnn_cell,
    sparse,
    transformer,
    upsampling,
)
from pullback.nn.modules.activation import *
from pullback.nn.modules.adaptive import *
from pullback.nn.modules.attention import *
from pullback.nn.modules.batchnorm import *
from pullback.nn.modules.container import *
from pullback.nn.modules.conv import *
from pullback.nn.modules.distance import *
from pullback.nn.modules.dropout import *
from pullback.nn.modules.flatten import *
from pullback.nn.modules.fold import *
from pullback.nn.modules.instancenorm import *
from pullback.nn.modules.lazy_conv import *
from pullback.nn.modules.linear import *
from pullback.nn.modules.linear_cross_entropy import *
from pullback.nn.modules.loss import *
from pullback.nn.modules.margin_loss import *
from pullback.nn.modules.module import Module
from pullback.nn.modules.normalization import *
from pullback.nn.modules.padding import *
from pullback.nn.modules.parameter_container import *
from pullback.nn.modules.pixelshuffle import *
from pullback.nn.modules.pooling import *
from pullback.nn.modules.rnn import *
from pullback.nn.modules.rnn_cell import *
from pullback.nn.modules.sparse import *
from pullback.nn.modules.transformer import *
from pullback.nn.modules.upsampling import *

__all__ = [
    "Module",
    *activation.__all__,
    *adaptive.__all__,
    *attention.__all__,
    *batchnorm.__all__,
    *container.__all__,
    *conv.__all__,
    *distance.__all__,
    *dropout.__all__,
    *flatten.__all__,
    *fold.__all__,
    *instancenorm.__all__,
    *lazy_conv.__all__,
    *linear.__all__,
    *linear_cross_entropy.__all__,
    *loss.__all__,
    *margin_loss.__all__,
    *normalization.__all__,
    *padding.__all__,
    *parameter_container.__all__,
    *pixelshuffle.__all__,
    *pooling.__all__,
    *rnn.__all__,
    *rnn_cell.__all__,
    *sparse.__all__,
    *transformer.__all__,
    *upsampling.__all__,
]
