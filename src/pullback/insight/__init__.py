"""Looking into autograd: where things were made, what is kept, why a gradient is missing."""
