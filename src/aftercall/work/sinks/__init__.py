"""Where follow-up work goes: each sink by itself, each idempotent by a key, each with a
rehearsal.
"""
