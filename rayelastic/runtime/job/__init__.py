"""A job as a whole: its coordinator, its PEs, and their recovery."""
