"""Windows, sessions and batches that a user's function aggregates: kept by key, emitted when they are complete."""
