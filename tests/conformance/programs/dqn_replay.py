"""Q-learning with a replay buffer and a target network on a corridor."""

import copy
import random
from collections import deque, namedtuple

import torch
from torch import nn, optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))


class Corridor:
    length = 6

    def reset(self):
        self.place = 0
        return self.observe()

    def observe(self):
        return nn.functional.one_hot(torch.tensor(self.place), self.length).float()

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        done = self.place == self.length - 1
        return self.observe(), 1.0 if done else -0.01, done


class Memory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, size):
        return Transition(*zip(*random.sample(self.memory, size)))


random.seed(0)
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(Corridor.length, 24), nn.ReLU(), nn.Linear(24, 2))
target = copy.deepcopy(policy).requires_grad_(False)
optimizer = optim.AdamW(policy.parameters(), lr=3e-3, amsgrad=True)
memory, environment, steps = Memory(200), Corridor(), 0
for episode in range(12):
    state, total = environment.reset(), 0.0
    for moves in range(30):  # noqa: B007
        epsilon = 0.05 + 0.9 * 0.97**steps
        steps += 1
        if random.random() < epsilon:
            action = torch.randint(2, (1,))
        else:
            with torch.no_grad():
                action = policy(state).argmax().view(1)
        new_state, reward, done = environment.step(action.item())
        memory.push(state, action, new_state, torch.tensor([reward]), torch.tensor([done]))
        state, total = new_state, total + reward
        if len(memory.memory) >= 16:
            batch = memory.sample(16)
            values = policy(torch.stack(batch.state)).gather(1, torch.stack(batch.action))
            with torch.no_grad():
                best = target(torch.stack(batch.next_state)).max(1).values
                best[torch.cat(batch.done)] = 0.0
            expected = torch.cat(batch.reward) + 0.95 * best
            loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(policy.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(target.parameters(), policy.parameters()):
                    slow.lerp_(fast, 0.05)
        if done:
            break
    print(episode, moves, round(total, 4), loss.item() if len(memory.memory) >= 16 else None)
print(policy(torch.eye(Corridor.length)).detach().argmax(1).tolist())
