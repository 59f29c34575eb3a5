"""Images resized, sampled and padded."""
