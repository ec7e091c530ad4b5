"""The works: a folder each."""
