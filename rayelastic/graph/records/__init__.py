"""Records: schemas, types, times, and how messages show values. Knows no operators."""
