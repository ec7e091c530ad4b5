"""Formats of files that sources read: their options, and the schemas of what is in them."""
