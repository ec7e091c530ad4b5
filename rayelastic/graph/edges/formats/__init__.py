"""Formats of files that sources read: their options, and how schemas are inferred from files."""
