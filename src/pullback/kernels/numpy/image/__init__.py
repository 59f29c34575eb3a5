"""Images sampled, scaled and padded."""
