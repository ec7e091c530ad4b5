"""What was saved, as later jobs and people read it: what a job goes on from, and state as tables."""
