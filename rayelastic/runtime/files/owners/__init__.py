"""Which run an output belongs to."""
