"""The server: one app on one port for every door that speaks HTTP."""
