"""Programs that the task runner calls; not part of the package."""
