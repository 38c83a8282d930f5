"""What the next call is told."""
