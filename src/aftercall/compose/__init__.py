"""Builds the parts of the app from settings. The only package that names concrete adapters."""
