"""The sampler for several processes, under the module torch keeps it in."""

from pullback.utils.data.sampler import DistributedSampler as DistributedSampler
