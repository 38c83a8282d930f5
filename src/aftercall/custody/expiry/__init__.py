"""What is past its time."""
