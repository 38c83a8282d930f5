"""What is kept of a person, for how long, and how it goes: export, erasure, retention, and
rebuilding from the archive.
"""
