"""Who is calling: the number's owner, another person at the number, or an unknown caller."""
