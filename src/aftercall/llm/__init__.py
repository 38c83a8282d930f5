"""Readers of transcripts: the interface, and the ways to fulfil it."""
