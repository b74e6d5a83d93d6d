"""`lore serve`: one app for many people, each with a memory of their own."""
