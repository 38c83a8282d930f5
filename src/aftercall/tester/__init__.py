"""Calls any agent with scripted callers, and says with evidence what went wrong and who caused
it.
"""
