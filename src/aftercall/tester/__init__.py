"""Calls any agent with scripted callers; shows what went wrong, who caused it, and the evidence."""
