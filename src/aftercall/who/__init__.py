"""Who is calling: the number's owner, another person at the same phone, or nobody that can be
known.
"""
