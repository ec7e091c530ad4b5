"""Entries in Ray's own store, the GCS: jobs, journals, requests for CPUs. It must not know a coordinator."""
