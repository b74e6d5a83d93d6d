"""MCP: the tools served to agents by the Model Context Protocol."""
