"""Benchmarks: `micro` (one mechanism), `figures` (one per paper figure), `peers` (the same work on other systems)."""
