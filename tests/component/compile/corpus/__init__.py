"""Two hundred ordinary functions of one tuple, by theme, as programs in public have them; rows that are hard on them."""
