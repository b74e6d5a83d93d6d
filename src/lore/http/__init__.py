"""HTTP server: one app on one port for the REST API, MCP, the gateway and the web pages."""
