"""The consolidation cycle, in which knowledge is rescored, merged, linked and forgotten."""
