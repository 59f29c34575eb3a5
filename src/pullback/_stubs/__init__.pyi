"""Type stubs of what ops attach at run time."""
