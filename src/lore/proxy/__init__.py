"""Proxies that agents start for every session: standard library only, to start quickly."""
