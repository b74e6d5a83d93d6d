"""The vector index: nearest-neighbour search over embeddings, derived from the database."""
