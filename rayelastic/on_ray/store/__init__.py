"""Entries in Ray's own store, the GCS: jobs, journals, CPU requests. It knows nothing of what a coordinator does with them."""
