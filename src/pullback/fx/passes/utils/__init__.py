"""What passes over graphs share: `torch.fx.passes.utils`."""
