"""Other libraries, facts and settings."""
