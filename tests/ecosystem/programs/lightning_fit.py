"""lightning: Trainer.fit on a small regression, with a logged metric and a checkpoint."""

import logging
import tempfile
import warnings

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("validation", torch.nn.functional.mse_loss(self.net(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


lightning.seed_everything(0, verbose=False)
x = torch.randn(64, 3)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True).sin()), batch_size=16)
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, default_root_dir=folder,
        enable_model_summary=False,
    )  # fmt: skip
    model = Model()
    trainer.fit(model, data, data)
    print("loss", trainer.callback_metrics["loss"].item(), trainer.callback_metrics["validation"].item())
    trainer.save_checkpoint(f"{folder}/last.ckpt")
    again = Model.load_from_checkpoint(f"{folder}/last.ckpt")
    print("loaded", all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True)))
