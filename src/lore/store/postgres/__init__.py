"""What is specific to PostgreSQL; imported only when a memory there is opened."""
