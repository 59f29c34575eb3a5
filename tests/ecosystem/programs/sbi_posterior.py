"""sbi: a posterior learnt by a masked autoregressive flow from simulations."""

import os
import tempfile

import torch
from sbi.inference import NPE
from sbi.utils import BoxUniform

os.chdir(tempfile.mkdtemp())  # it writes event files
torch.manual_seed(0)
prior = BoxUniform(low=-2 * torch.ones(2), high=2 * torch.ones(2))
theta = prior.sample((200,))
inference = NPE(prior=prior, density_estimator="maf", show_progress_bars=False)
inference.append_simulations(theta, theta + 0.1 * torch.randn(200, 2))
posterior = inference.build_posterior(inference.train(max_num_epochs=3))
samples = posterior.sample((100,), x=torch.zeros(2), show_progress_bars=False)
print(samples.mean(0).tolist(), posterior.log_prob(samples[:3], x=torch.zeros(2)).tolist())
