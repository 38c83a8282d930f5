"""The reader by model: a question and a transcript go out, a checked answer comes back."""
