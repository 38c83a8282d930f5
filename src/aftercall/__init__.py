"""Aftercall: the call ends; the work doesn't."""

__version__ = "0.1.0"
