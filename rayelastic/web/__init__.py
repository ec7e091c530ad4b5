"""The page of running jobs: what is read of a job, kept for a while, and served to browsers.

Knows a job by what it tells (`Watched`), never how it was started; the page itself is in `assets/`.
"""
