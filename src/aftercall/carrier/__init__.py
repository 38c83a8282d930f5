"""Carriers over HTTP: sends the requests of `phone`, and fetches recordings."""
