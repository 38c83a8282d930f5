"""Markdown files that people own, edited in place: what a person wrote stays as it is."""
