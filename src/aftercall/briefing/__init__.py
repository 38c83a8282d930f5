"""Briefings: what an agent knows when a call begins."""
