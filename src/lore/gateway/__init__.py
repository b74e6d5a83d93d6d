"""The gateway: a door that stands between an agent and the API of its model."""
