"""Runs a topology: `run` in this process, `submit` on Ray, `attach` to a running job; and their results.

A `Job` is the same, however it was started: it calls a coordinator through one small interface.
"""

from rayelastic.job.control import Control, LocalControl
from rayelastic.job.job import Job
from rayelastic.job.preparing import prepare
from rayelastic.job.result import JobResult
from rayelastic.job.starting import attach, run, start, submit, view

__all__ = ["Control", "Job", "JobResult", "LocalControl", "attach", "prepare", "run", "start", "submit", "view"]
