"""Websockets on the fast path: fifty frames a second pass each way for every call."""
