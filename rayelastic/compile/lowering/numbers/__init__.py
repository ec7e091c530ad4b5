"""Operations of numbers, with CPython's semantics."""
