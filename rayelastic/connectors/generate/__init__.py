"""Sources of generated tuples."""
