"""tensorboard: numbers, a histogram, an image and hyperparameters written to event files and read back."""

import tempfile

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.randn(()).exp(), step)
        writer.add_histogram("weights", torch.randn(1000), 1)
        writer.add_image("image", torch.rand(3, 4, 5))
        writer.add_pr_curve("curve", torch.arange(6) % 2, torch.rand(6), num_thresholds=5)
        writer.add_hparams({"lr": 0.1, "name": "adam"}, {"metric": 2.0}, run_name="run")
    found = EventAccumulator(folder).Reload()
    print(sorted(found.Tags()["scalars"]), [event.value for event in found.Scalars("loss")])
    values = found.Histograms("weights")[0].histogram_value
    print(values.min, values.max, values.sum, len(values.bucket), values.bucket[:3])
    print(
        found.Images("image")[0].width,
        found.Images("image")[0].height,
        len(found.Images("image")[0].encoded_image_string),
    )
    print([round(number, 5) for number in found.Tensors("curve")[0].tensor_proto.float_val])
    print([event.value for event in EventAccumulator(f"{folder}/run").Reload().Scalars("metric")])
