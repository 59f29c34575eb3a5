"""geoopt: points on manifolds as parameters of a class of its own, moved by Riemannian optimizers."""

import geoopt
import torch

torch.manual_seed(0)
places = ((geoopt.Sphere(), (5,)), (geoopt.Stiefel(), (5, 3)), (geoopt.SymmetricPositiveDefinite(), (3, 3)))
for manifold, shape in places:
    start, goal = manifold.random(*shape, dtype=torch.float64), manifold.random(*shape, dtype=torch.float64)
    point = geoopt.ManifoldParameter(start, manifold=manifold)
    for kind in (geoopt.optim.RiemannianSGD, geoopt.optim.RiemannianAdam):
        optimizer = kind([point], lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            loss = (point - goal).pow(2).sum()
            loss.backward()
            optimizer.step()
        print(manifold.name, kind.__name__, loss.item(), point.detach().sum().item())
ball = geoopt.PoincareBall(c=1.0)
moved = ball.mobius_matvec(torch.randn(2, 2), ball.expmap0(0.1 * torch.randn(3, 2)))
print(moved.tolist(), ball.dist0(moved).tolist())
