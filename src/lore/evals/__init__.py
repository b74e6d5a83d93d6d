"""Evals: how well the product does on data that says what is right."""
