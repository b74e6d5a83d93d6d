"""Recall: find the items in memory that answer a question, and rank them."""
