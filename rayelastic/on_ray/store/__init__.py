"""What is kept in Ray's own store, the GCS: jobs, journals, wishes. Must not know what a coordinator makes of them."""
