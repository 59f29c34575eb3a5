"""stable-baselines3: PPO on CartPole for two short rollouts."""

import gymnasium
import torch
from stable_baselines3 import PPO

torch.set_num_threads(1)
model = PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=64, batch_size=32, n_epochs=2, seed=0, device="cpu")
model.learn(128)
print([p.detach().abs().sum().item() for p in model.policy.parameters()])
