"""Calls that a platform ran by itself: proven to be its own, and turned into a finished call of
ours.
"""
