"""The meta device: arrays that have a shape, strides and a dtype, and no elements."""
