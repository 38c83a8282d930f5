"""Export, erasure and retention of a person's data, and rebuilding memory from the archive."""
