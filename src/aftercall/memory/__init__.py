"""What is kept of calls for later ones."""
