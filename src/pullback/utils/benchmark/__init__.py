"""Timing statements: `torch.utils.benchmark`."""

from pullback.utils.benchmark.utils.common import Measurement as Measurement
from pullback.utils.benchmark.utils.common import TaskSpec as TaskSpec
from pullback.utils.benchmark.utils.common import ordered_unique as ordered_unique
from pullback.utils.benchmark.utils.common import select_unit as select_unit
from pullback.utils.benchmark.utils.common import set_torch_threads as set_torch_threads
from pullback.utils.benchmark.utils.common import trim_sigfig as trim_sigfig
from pullback.utils.benchmark.utils.common import unit_to_english as unit_to_english
from pullback.utils.benchmark.utils.compare import Colorize as Colorize
from pullback.utils.benchmark.utils.compare import Compare as Compare
from pullback.utils.benchmark.utils.timer import Language as Language
from pullback.utils.benchmark.utils.timer import Timer as Timer
from pullback.utils.benchmark.utils.timer import timer as timer
