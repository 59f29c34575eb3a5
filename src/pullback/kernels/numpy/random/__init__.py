"""torch's random numbers."""
