"""What all of lowering stands on: declarations, engine services, views, refusals. Knows no operation of any type."""
