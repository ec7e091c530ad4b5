"""Regular expressions: translation of patterns of `re` to PCRE2's, and the results of a match."""
