"""Live calls, durable turn by turn; finished calls, sealed in the archive."""
