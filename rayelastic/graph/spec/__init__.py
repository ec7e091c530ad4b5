"""Operators as the layers below see them, and the common parts of all declarations. Knows no particular operator."""
