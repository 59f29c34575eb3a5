"""Layers with hand-written derivatives: a straight-through estimator, a linear layer, an in-place function."""

import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable


class Binarize(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1).to(grad.dtype)


class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Scale_(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.mark_dirty(x)
        return x.mul_(factor)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Layer(torch.nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(m, n).uniform_(-0.5, 0.5))
        self.bias = torch.nn.Parameter(torch.zeros(m))

    def forward(self, x):
        return LinearFunction.apply(x, self.weight, self.bias)

    def extra_repr(self):
        return f"shape={tuple(self.weight.shape)}"


torch.manual_seed(0)
double = dict(dtype=torch.double, requires_grad=True)
inputs = (torch.randn(4, 3, **double), torch.randn(2, 3, **double), torch.randn(2, **double))
print(gradcheck(LinearFunction.apply, inputs), gradgradcheck(LinearFunction.apply, inputs))
net = torch.nn.Sequential(Layer(5, 8), torch.nn.Tanh(), Layer(8, 1))
print(net)
x = torch.randn(32, 5)
y = (x[:, :1] * x[:, 1:2] > 0).float() * 2 - 1
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for step in range(20):
    out = net(x)
    signs = Binarize.apply(out)
    loss = torch.nn.functional.mse_loss(signs, y) + 0.1 * out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), (signs == y).float().mean().item())
w = torch.ones(3, requires_grad=True)
v = Scale_.apply(w.clone(), 3.0)
(v**2).sum().backward()
print(w.grad.tolist(), type(v.grad_fn).__name__)
try:
    torch.autograd.grad(torch.autograd.grad(Scale_.apply(w.clone(), 2.0).sum(), w, create_graph=True)[0].sum(), w)
except RuntimeError as error:
    print(str(error).splitlines()[0])
