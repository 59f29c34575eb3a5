"""Collectives that are part of the graph."""

from pullback.distributed.nn.functional import all_gather as all_gather
from pullback.distributed.nn.functional import all_reduce as all_reduce
from pullback.distributed.nn.functional import all_to_all as all_to_all
from pullback.distributed.nn.functional import all_to_all_single as all_to_all_single
from pullback.distributed.nn.functional import broadcast as broadcast
from pullback.distributed.nn.functional import gather as gather
from pullback.distributed.nn.functional import reduce as reduce
from pullback.distributed.nn.functional import reduce_scatter as reduce_scatter
from pullback.distributed.nn.functional import scatter as scatter
