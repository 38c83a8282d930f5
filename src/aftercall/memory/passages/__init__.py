"""Passages: the unit of search."""
