"""Side effects of functions: what they change outside themselves, and so remember between tuples."""
