"""What was learnt in calls: facts with evidence and time, kept per caller."""
