"""Context: what is put into a prompt; pure."""
