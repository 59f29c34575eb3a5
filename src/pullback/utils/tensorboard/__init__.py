"""Event files for TensorBoard, written through the package `tensorboard`, which must be installed.

```
from pullback.utils.tensorboard import SummaryWriter

with SummaryWriter("runs/first") as writer:
    writer.add_scalar("loss", loss, step)
```
"""

from tensorboard.summary.writer.record_writer import RecordWriter

from pullback.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
