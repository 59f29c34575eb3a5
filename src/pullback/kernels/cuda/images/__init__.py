"""Images: windows that are pooled, and scaling to other sizes."""
