"""The wires: the APIs that clients speak, each as pure functions from bytes to bytes."""
