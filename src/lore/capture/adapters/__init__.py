"""Adapters: parse the transcripts of each agent into messages."""
