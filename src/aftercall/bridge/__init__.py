"""One call, from ring to hang-up."""
