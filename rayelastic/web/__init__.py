"""The web UI of jobs: it samples a job, keeps its history for a while, and serves both to browsers.

Knows a job as a `Watched`, never how it was started. What browsers load is in `assets/`.
"""
