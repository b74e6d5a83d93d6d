"""Adapters: the transcripts of each agent, told in one form."""
