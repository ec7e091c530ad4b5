"""A bounded source, and the one that continues it."""
