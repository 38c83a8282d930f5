"""The answers of models that were paid for."""
