"""Python functions, and objects that take part in checkpoints, as sinks."""
