"""The daemon: capture, embedding, jobs and upkeep, in one process for each home."""
