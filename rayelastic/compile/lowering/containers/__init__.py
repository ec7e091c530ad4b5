"""Lists, dicts and sets that a function makes."""
