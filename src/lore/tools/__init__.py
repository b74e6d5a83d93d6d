"""Tools: what an agent can do with a memory, once, for MCP and REST."""
