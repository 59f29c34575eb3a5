"""PennyLane: circuits whose numbers are tensors, differentiated in three ways, and one as a layer of a net."""

import pennylane as qml
import torch

torch.manual_seed(0)
device = qml.device("default.qubit", wires=2)


def circuit(weights, angles):
    """One expectation after four gates."""
    qml.RX(angles[0], wires=0)
    qml.RY(weights[0], wires=0)
    qml.CNOT([0, 1])
    qml.Rot(weights[1], weights[2], angles[1], wires=1)
    return qml.expval(qml.PauliZ(0) @ qml.PauliX(1))


for method in ("backprop", "parameter-shift", "adjoint"):
    node = qml.QNode(circuit, device, interface="torch", diff_method=method)
    weights = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        value = node(weights, torch.tensor([0.5, 0.7], dtype=torch.float64))
        value.backward()
        optimizer.step()
    print(method, value.item(), weights.tolist())


@qml.qnode(device)
def layer(inputs, weights):
    """Two expectations of entangled qubits."""
    qml.AngleEmbedding(inputs, wires=[0, 1])
    qml.StronglyEntanglingLayers(weights, wires=[0, 1])
    return [qml.expval(qml.PauliZ(wire)) for wire in range(2)]


shapes = {"weights": (2, 2, 3)}
net = torch.nn.Sequential(torch.nn.Linear(3, 2), qml.qnn.TorchLayer(layer, shapes), torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 3)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item())
