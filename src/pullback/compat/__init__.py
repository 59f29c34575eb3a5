"""What lets programs written for torch run as they are."""
