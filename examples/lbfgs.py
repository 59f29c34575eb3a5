"""L-BFGS changes a pattern until its local statistics are those of another: style transfer without a network."""

import support
import torch

given = support.arguments(__doc__, steps=50, picture="lbfgs.svg")
torch.manual_seed(0)
size = 12
rows, columns = torch.meshgrid(*[torch.arange(size, device=given.device)] * 2, indexing="ij")
style = ((rows + columns) % 4 < 2).double()
content = ((rows - 5.5) ** 2 + (columns - 5.5) ** 2 < 16).double()


def statistics(picture):
    """How often pixels and their neighbours are dark together: a quadratic form of the picture."""
    patches = picture.unfold(0, 3, 1).unfold(1, 3, 1).reshape(-1, 9)
    return patches.T @ patches / len(patches)


target = statistics(style)
picture = content.clone().requires_grad_()
optimizer = torch.optim.LBFGS([picture], lr=0.5, max_iter=1, history_size=10, line_search_fn="strong_wolfe")
losses = []


def closure():
    optimizer.zero_grad()
    loss = ((statistics(picture) - target) ** 2).sum() + 1e-3 * ((picture - content) ** 2).sum()
    loss.backward()
    return loss


for _ in support.progress(given.steps, lambda: f"loss {losses[-1]:.6f}"):
    losses.append(optimizer.step(closure).item())

print(f"loss: {losses[0]:.4f} -> {losses[-1]:.6f}")
shown = torch.stack([content, style, picture.detach()]).cpu().numpy()
support.finish(
    given,
    losses,
    support.lines("L-BFGS", ("loss", losses), log=True),
    support.images("content, style, result", shown, columns=3, scale=8),
)
