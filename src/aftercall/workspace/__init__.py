"""The markdown that people own, edited in place: what a person wrote is never lost, re-ordered
or re-flowed.
"""
