"""Loading data: datasets, orders, batches, and workers that fetch ahead."""

from pullback.utils.data import distributed as distributed
from pullback.utils.data.collate import default_collate as default_collate
from pullback.utils.data.collate import default_convert as default_convert
from pullback.utils.data.dataloader import DataLoader as DataLoader
from pullback.utils.data.dataset import ChainDataset as ChainDataset
from pullback.utils.data.dataset import ConcatDataset as ConcatDataset
from pullback.utils.data.dataset import Dataset as Dataset
from pullback.utils.data.dataset import IterableDataset as IterableDataset
from pullback.utils.data.dataset import StackDataset as StackDataset
from pullback.utils.data.dataset import Subset as Subset
from pullback.utils.data.dataset import TensorDataset as TensorDataset
from pullback.utils.data.dataset import random_split as random_split
from pullback.utils.data.sampler import BatchSampler as BatchSampler
from pullback.utils.data.sampler import DistributedSampler as DistributedSampler
from pullback.utils.data.sampler import RandomSampler as RandomSampler
from pullback.utils.data.sampler import Sampler as Sampler
from pullback.utils.data.sampler import SequentialSampler as SequentialSampler
from pullback.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from pullback.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler
from pullback.utils.data.worker import get_worker_info as get_worker_info
