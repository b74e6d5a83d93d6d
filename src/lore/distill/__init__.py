"""Distill: messages condensed into logs, and old logs into older ones."""
