"""Windows, sessions and batches of which a user's function makes what is given: kept by key, given when complete."""
