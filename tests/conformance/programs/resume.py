"""Training with schedulers, mixed precision, clipping and averaging, stopped and taken up again from a file."""

import os
import tempfile

import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

SCHEDULES = {
    "onecycle": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.05, total_steps=20),
    "restarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=4, T_mult=2),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.LinearLR(o, 0.1, total_iters=3), lr_scheduler.ExponentialLR(o, 0.9)], milestones=[3]
    ),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=1),
}


def build(schedule):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    rest = [p for n, p in model.named_parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0, "lr": 0.02}]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    scaler = torch.amp.GradScaler("cpu", enabled=True, init_scale=1024.0, growth_interval=4)
    return model, optimizer, SCHEDULES[schedule](optimizer), average, scaler


def train(parts, x, y, steps):
    model, optimizer, scheduler, average, scaler = parts
    model.train()
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        average.update_parameters(model)
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            scheduler.step(loss.item())
        else:
            scheduler.step()
        print(loss.item(), norm.item(), [g["lr"] for g in optimizer.param_groups], scaler.get_scale())


for name in SCHEDULES:
    print(name)
    torch.manual_seed(1)
    x, y = torch.randn(24, 4), torch.randint(0, 3, (24,))
    parts = build(name)
    train(parts, x, y, 8)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        names = ("model", "optimizer", "scheduler", "average", "scaler")
        state = {key: part.state_dict() for key, part in zip(names, parts)}
        torch.save({**state, "rng": torch.get_rng_state(), "step": 8}, path)
        again = build(name)
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    for key, part in zip(names, again):
        part.load_state_dict(checkpoint[key])
    torch.set_rng_state(checkpoint["rng"])
    train(again, x, y, 4)
    model, average = again[0].eval(), again[3].eval()
    with torch.inference_mode():
        print(checkpoint["step"], model(x).sum().item(), average(x).sum().item())
