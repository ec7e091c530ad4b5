"""Data in Ray's own store, the GCS: jobs, journals, CPU requests. Must not know how a coordinator uses them."""
