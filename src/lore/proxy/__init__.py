"""Bridges: what agents start for every session, of the standard library alone."""
