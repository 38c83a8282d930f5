"""Carriers over HTTP: steering calls, sending messages, fetching recordings.

What to send stands in `phone`; here it is sent.
"""
