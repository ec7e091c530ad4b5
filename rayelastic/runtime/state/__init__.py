"""Saved state, as later jobs and people read it: the snapshot that a job restores, and state as tables."""
