"""The gateway: a proxy between agents and the models that they talk to, with memory."""
