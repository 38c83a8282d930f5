"""Does what callers asked for: exactly once, and only as far as the caller is trusted."""
