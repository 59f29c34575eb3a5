"""The names of torch.linalg: those of its ops without their prefix."""

from pullback._op.declare import spaces

spaces["linalg"] = {name.removeprefix("linalg_"): value for name, value in spaces["linalg"].items()}
