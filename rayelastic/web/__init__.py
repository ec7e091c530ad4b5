"""The web UI of jobs: what is read of a job, kept for a while, and served to browsers.

Knows a job as a `Watched`, never how it was started. What browsers load is in `assets/`.
"""
