"""Where torch keeps `errors.record`."""
