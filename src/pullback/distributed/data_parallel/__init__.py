"""Training one model on several ranks: gradients are averaged in buckets while backward runs."""
