"""The formats of state: its description in a manifest, its rows as tables, and keys as users write them."""
