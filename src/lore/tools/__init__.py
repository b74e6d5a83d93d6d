"""Tools: what an agent can do with a memory, once, for MCP, REST, the gateway and the CLI."""
