"""Pins: topics that come back over several conversations, each with a page."""
