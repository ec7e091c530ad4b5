"""What the tuples of a stream look like: schemas, types, times, and how messages show values. Knows no operators."""
