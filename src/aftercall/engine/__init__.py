"""Who listens and speaks for the agent."""
