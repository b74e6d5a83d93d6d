"""Summarize by rules and the embedder alone, without a model, key or network."""
