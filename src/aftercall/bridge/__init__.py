"""One call, ring to hang-up."""
