"""The owner of an output: the run that may write to it."""
