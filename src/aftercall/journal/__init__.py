"""Every turn of a live call, durable as it is spoken; every finished call, sealed."""
