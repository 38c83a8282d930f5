"""The engines that listen and speak for the agent."""
