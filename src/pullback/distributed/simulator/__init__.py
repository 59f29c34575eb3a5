"""What a program would take on a cluster: a step is recorded here, and replayed under the costs of its network."""
