"""MCP: serve the tools to agents with the Model Context Protocol."""
