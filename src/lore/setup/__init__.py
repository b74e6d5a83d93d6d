"""Setup: the configuration files of agents, edited and restored."""
