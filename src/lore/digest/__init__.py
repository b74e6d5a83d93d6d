"""Digest: distill sessions into logs, extract knowledge from them, and consolidate it."""
