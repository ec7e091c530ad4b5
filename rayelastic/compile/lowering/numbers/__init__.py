"""Operations of numbers, as CPython has them."""
