"""What was asked on the phone gets done: once, provably, and only as far as the caller is
trusted.
"""
