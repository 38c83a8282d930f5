"""Who saw a secret, who decided something, who had somebody erased."""
