"""The daemon: one process per home for capture, embedding, jobs and maintenance."""
