"""What a function returns or yields, as its source says: tuples with which fields."""
