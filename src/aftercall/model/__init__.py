"""The nouns: frozen, no input or output."""
