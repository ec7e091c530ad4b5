"""A job as a whole: its coordinator, its processing elements, and their recovery."""
