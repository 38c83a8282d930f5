"""What can go wrong in a call, one file per family; each finding says who caused it."""
