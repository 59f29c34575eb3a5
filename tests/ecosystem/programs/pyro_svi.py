"""pyro: stochastic variational inference of a mean, and a few steps of NUTS."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal

pyro.set_rng_seed(0)
data = torch.randn(30) + 2


def model(data):
    mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
    scale = pyro.sample("scale", dist.HalfNormal(2.0))
    with pyro.plate("data", len(data)):
        pyro.sample("seen", dist.Normal(mean, scale), obs=data)


guide = AutoNormal(model)
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
for _ in range(20):
    loss = svi.step(data)
print(loss, {name: value.item() for name, value in guide.median().items()})
sampler = MCMC(NUTS(model), num_samples=10, warmup_steps=10, disable_progbar=True)
sampler.run(data)
print({name: values.mean().item() for name, values in sampler.get_samples().items()})
