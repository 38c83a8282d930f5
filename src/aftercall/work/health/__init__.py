"""Whether every call came to its end: one state a call with its reason, and the sweep that
repairs what fell through.
"""
