"""Emulated model servers: they refuse what the real ones refuse, and fail on request."""
