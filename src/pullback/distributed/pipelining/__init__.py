"""`torch.distributed.pipelining`: a model in stages on several ranks, and batches that go through them in parts."""

from __future__ import annotations

from pullback.distributed.pipelining._IR import Pipe as Pipe
from pullback.distributed.pipelining._IR import SplitPoint as SplitPoint
from pullback.distributed.pipelining._IR import pipe_split as pipe_split
from pullback.distributed.pipelining._IR import pipeline as pipeline
from pullback.distributed.pipelining.schedules import Schedule1F1B as Schedule1F1B
from pullback.distributed.pipelining.schedules import ScheduleDualPipeV as ScheduleDualPipeV
from pullback.distributed.pipelining.schedules import ScheduleGPipe as ScheduleGPipe
from pullback.distributed.pipelining.schedules import ScheduleInterleaved1F1B as ScheduleInterleaved1F1B
from pullback.distributed.pipelining.schedules import ScheduleInterleavedZeroBubble as ScheduleInterleavedZeroBubble
from pullback.distributed.pipelining.schedules import ScheduleLoopedBFS as ScheduleLoopedBFS
from pullback.distributed.pipelining.schedules import ScheduleZBVZeroBubble as ScheduleZBVZeroBubble
from pullback.distributed.pipelining.stage import PipelineStage as PipelineStage
from pullback.distributed.pipelining.stage import build_stage as build_stage
