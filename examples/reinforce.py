"""REINFORCE learns to walk to the goal of a corridor whose middle is slippery."""

import support
import torch
from torch import nn
from torch.distributions import Categorical

given = support.arguments(__doc__, steps=120, picture="reinforce.svg")
torch.manual_seed(0)
length, goal = 9, 8
policy = nn.Sequential(nn.Linear(length, 24), nn.Tanh(), nn.Linear(24, 2)).to(given.device)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)


def episode():
    """Walk until the goal or until tired: the log-probabilities of the steps taken, and the rewards."""
    place, logs, rewards = 2, [], []
    for _ in range(24):
        state = torch.zeros(length, device=given.device)
        state[place] = 1.0
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        logs.append(choice.log_prob(action))
        move = 1 if action.item() == 1 else -1
        if 3 <= place <= 5 and torch.rand(()).item() < 0.2:
            move = -move
        place = min(max(place + move, 0), length - 1)
        rewards.append(1.0 if place == goal else -0.05)
        if place == goal:
            break
    return torch.stack(logs), rewards


losses, totals = [], []
for _ in support.progress(given.steps, lambda: f"reward {totals[-1]:.2f}"):
    loss, total = 0.0, 0.0
    for _ in range(4):
        logs, rewards = episode()
        returns, following = [], 0.0
        for reward in reversed(rewards):
            following = reward + 0.95 * following
            returns.insert(0, following)
        loss = loss - (logs * (torch.tensor(returns, device=given.device) - 0.3)).sum() / 4
        total += sum(rewards) / 4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    totals.append(total)

print(f"mean reward of the last steps: {sum(totals[-10:]) / 10:.2f}")
support.finish(given, losses, support.lines("REINFORCE", ("mean reward", totals)))
