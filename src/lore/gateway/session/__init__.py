"""State of the conversations that pass through the gateway."""
