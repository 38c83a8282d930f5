"""What happens after hang-up: durable, visible, each effect once."""
