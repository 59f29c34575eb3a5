"""skorch: a classifier in the manner of scikit-learn."""

import numpy as np
import torch
from skorch import NeuralNetClassifier

torch.manual_seed(0)
x = np.random.RandomState(0).randn(60, 4).astype(np.float32)
y = (x.sum(1) > 0).astype(np.int64)
net = NeuralNetClassifier(
    torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2), torch.nn.Softmax(-1)),
    max_epochs=3,
    lr=0.1,
    verbose=0,
    train_split=None,
)
net.fit(x, y)
print([round(float(value), 6) for value in net.history[:, "train_loss"]], net.predict_proba(x[:2]).tolist())
