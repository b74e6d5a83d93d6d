"""Recall: finding the right piece again."""
