"""What torchvision has compiled against torch's C++ interface, in Python: the ops of its two libraries."""
