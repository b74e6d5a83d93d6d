"""Prompt context: layers, plans and texts of prompts; pure functions."""
