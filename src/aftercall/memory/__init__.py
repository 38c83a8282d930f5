"""What is remembered: facts with evidence, and the search over facts, calls and summaries."""
