"""Recordings of calls: a row for how far each has come, a file in the home once it is here."""
