"""What is kept in Ray's own store, the GCS: jobs, journals, requests for CPUs. Must not know what a coordinator makes of them."""
