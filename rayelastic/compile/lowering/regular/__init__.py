"""Regular expressions: patterns of `re` as PCRE2's, and what a match gives."""
