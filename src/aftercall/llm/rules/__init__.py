"""The reader by rules: clauses, dialogue acts, one state."""
