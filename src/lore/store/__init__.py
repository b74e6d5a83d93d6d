"""The store: all SQL, the schema, and one module for each group of tables."""
