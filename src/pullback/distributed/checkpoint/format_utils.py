"""From a folder of many ranks to one file, and back."""

from __future__ import annotations

from typing import Any

from pullback.distributed.checkpoint.loading import read_everything
from pullback.distributed.checkpoint.saving import save
from pullback.serialization import load as load_file
from pullback.serialization import save as save_file


def dcp_to_torch_save(dcp_checkpoint_dir: Any, torch_save_path: Any) -> None:
    """A checkpoint of many ranks as one file of `torch.save`."""
    save_file(read_everything(dcp_checkpoint_dir), torch_save_path)


def torch_save_to_dcp(torch_save_path: Any, dcp_checkpoint_dir: Any) -> None:
    """The opposite."""
    save(load_file(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
