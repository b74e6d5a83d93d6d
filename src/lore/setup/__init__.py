"""Setup: add Lore to the configuration files of agents, and remove it again."""
