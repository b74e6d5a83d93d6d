"""The store: the only room that knows SQL, and where the indexes live."""
