"""Task memory: what agents did becomes patterns, skills and warnings for the next task."""
