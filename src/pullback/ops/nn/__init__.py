"""The operations of neural networks, published as nn.functional."""
