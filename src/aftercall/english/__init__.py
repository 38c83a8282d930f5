"""Spoken English without a model: strings in, values out."""
