"""Proximal policy optimisation on a point that seeks the origin: distributions, advantages, clipped ratios."""

import torch
from torch import nn
from torch.distributions import Categorical, Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 16), nn.Tanh())
        self.mean, self.value, self.mode = nn.Linear(16, 2), nn.Linear(16, 1), nn.Linear(16, 3)
        self.log_std = nn.Parameter(-0.5 * torch.ones(2))
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, gain=2**0.5)
                nn.init.constant_(m.bias, 0.0)

    def forward(self, state):
        h = self.body(state)
        policy = Independent(Normal(self.mean(h), self.log_std.exp().expand_as(self.mean(h))), 1)
        return policy, Categorical(logits=self.mode(h)), self.value(h).squeeze(-1)


def advantages(rewards, values, last, gamma=0.95, lam=0.9):
    out, carry = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        after = values[t + 1] if t + 1 < len(rewards) else last
        carry = rewards[t] + gamma * after - values[t] + gamma * lam * carry
        out[t] = carry
    return out


torch.manual_seed(0)
net = ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
for update in range(6):
    state, rows = torch.randn(8, 2), []
    with torch.no_grad():
        for _ in range(10):
            policy, mode, value = net(state)
            action, choice = policy.sample(), mode.sample()
            log_prob = policy.log_prob(action) + mode.log_prob(choice)
            after = state + 0.3 * action.clamp(-1, 1) * (1 + choice[:, None]) / 2
            rows.append((state, action, choice, log_prob, value, -after.norm(dim=1)))
            state = after
        last = net(state)[2]
    states, actions, choices, old, values, rewards = (torch.stack(part) for part in zip(*rows))
    gained = advantages(rewards, values, last)
    returns = gained + values
    gained = (gained - gained.mean()) / (gained.std() + 1e-8)
    for _ in range(3):
        for index in torch.randperm(80).split(40):
            policy, mode, value = net(states.flatten(0, 1)[index])
            ratio = policy.log_prob(actions.flatten(0, 1)[index]) + mode.log_prob(choices.flatten()[index])
            ratio = (ratio - old.flatten()[index]).exp()
            advantage = gained.flatten()[index]
            surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            entropy = policy.entropy().mean() + mode.entropy().mean()
            loss = -surrogate + 0.5 * nn.functional.mse_loss(value, returns.flatten()[index]) - 0.01 * entropy
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
    print(update, rewards.mean().item(), loss.item(), entropy.item())
squashed = TransformedDistribution(Normal(torch.zeros(2), torch.ones(2)), [TanhTransform(cache_size=1)])
action = squashed.rsample()
print(action.tolist(), squashed.log_prob(action).sum().item())
