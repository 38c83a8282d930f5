"""Calls that a hosted platform ran: webhooks are verified and become finished calls."""
