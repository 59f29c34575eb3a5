"""Common mistakes, each a short program, and the traceback it ends with."""

import linecache
import traceback
import warnings
from contextvars import Context

MISTAKES = {
    "matmul of wrong shapes": """
a, b = torch.ones(2, 3), torch.ones(2, 3)
a @ b
""",
    "shapes that do not broadcast": """
torch.ones(2, 3) + torch.ones(4)
""",
    "index out of range": """
torch.arange(8)[64]
""",
    "index tensor out of range": """
torch.arange(8.0)[torch.tensor([1, 64])]
""",
    "wrong dtype": """
torch.ones(2, 3) @ torch.ones(3, 2, dtype=torch.int64)
""",
    "backward twice": """
x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
loss.backward()
""",
    "written over": """
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
""",
    "backward of many": """
x = torch.ones(3, requires_grad=True)
(x * 2).backward()
""",
    "backward of what needs no gradient": """
net, x = nn.Linear(3, 1).requires_grad_(False), torch.ones(2, 3)
with torch.no_grad():
    mean = x.mean()
loss = net(x).sum()
loss.backward()
""",
    "backward of what was made in a no_grad block": """
net, x = nn.Linear(3, 1), torch.ones(2, 3)
with torch.no_grad():
    out = net(x)
loss = out.sum()
loss.backward()
""",
    "gradient nobody depends on": """
x = torch.ones(3, requires_grad=True)
y = torch.ones(3, requires_grad=True)
torch.autograd.grad(x.sum(), y)
""",
    "class index out of range": """
F.cross_entropy(torch.zeros(3, 4), torch.tensor([0, 7, 2]))
""",
    "embedding index out of range": """
table = nn.Embedding(4, 2)
table(torch.tensor([[0, 1], [9, 2]]))
""",
    "channels of a convolution": """
conv = nn.Conv2d(3, 4, 3)
conv(torch.ones(1, 2, 5, 5))
""",
    "features of a linear layer": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 2))

    def forward(self, x):
        return self.layers(x)

net = Net()
net(torch.ones(2, 3))
""",
    "cat of different shapes": """
torch.cat([torch.ones(2, 3), torch.ones(2, 4)])
""",
    "view of a wrong size": """
torch.ones(2, 3).view(4, 2)
""",
    "numpy of a tensor with gradient": """
torch.ones(3, requires_grad=True).numpy()
""",
    "item of many": """
torch.ones(3).item()
""",
    "cuda": """
torch.ones(3, device="cuda")
""",
    "state dict that does not match": """
nn.Linear(2, 2).load_state_dict({"weight": torch.ones(2, 2), "other": torch.ones(2)})
""",
    "optimizer without parameters": """
torch.optim.SGD([], lr=0.1)
""",
    "collating different sizes": """
loader = torch.utils.data.DataLoader([torch.ones(2), torch.ones(3)], batch_size=2)
for batch in loader:
    pass
""",
    "stack of nothing": """
torch.stack([])
""",
    "unknown keyword": """
nn.Conv2d(3, 4, kernel=3)
""",
    "wrong type of an argument": """
torch.add("one", 2)
""",
    "truth of many": """
if torch.ones(3) > 0:
    pass
""",
    "integers with gradient": """
torch.ones(3, dtype=torch.int64, requires_grad=True)
""",
    "optimizer step": """
w = torch.ones(3, requires_grad=True)
w.grad = torch.ones(3)
optimizer = torch.optim.SGD([w], lr=0.1)

def closure():
    return w @ torch.ones(4)

optimizer.step(closure)
""",
    "hook": """
x = torch.ones(3, requires_grad=True)

def hook(grad):
    return grad @ torch.ones(4)

y = x * 2
y.register_hook(hook)
y.sum().backward()
""",
    "custom function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        try:
            return {}["gradient"]
        except KeyError as error:
            raise ValueError("no gradient") from error

Double.apply(torch.ones(3, requires_grad=True)).sum().backward()
""",
    "while another error is handled": """
try:
    {}["weights"]
except KeyError:
    torch.ones(2) + torch.ones(3)
""",
    "no_grad function": """
@torch.no_grad()
def evaluate(x):
    return x.reshape(7)

evaluate(torch.ones(2, 3))
""",
    "misspelt name": """
torch.sigmiod(torch.ones(3))
""",
}


def traceback_of(library, name):
    """What the program prints on one library when it ends, without the marks below the lines, which differ by Python,
    and the error itself."""
    source = MISTAKES[name].lstrip("\n")
    linecache.cache["mistake.py"] = (len(source), None, source.splitlines(True), "mistake.py")
    names = {"torch": library, "nn": library.nn, "F": library.nn.functional, "__name__": "mistake"}
    code = compile(source, "mistake.py", "exec")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            Context().run(exec, code, names)  # knows nothing of what ran before
        except Exception as error:
            error.__traceback__ = error.__traceback__.tb_next  # this function
            text = "".join(traceback.format_exception(error))
            return "\n".join([line for line in text.splitlines() if line.strip(" ~^") or not line]) + "\n", error
    raise AssertionError(f"{name}: no error")
