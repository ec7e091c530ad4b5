"""Checkpoints and savepoints: a job is saved at one moment of its streams, and restored from there.

`protocol.py` and `restarts.py` decide, and know nothing that runs. Files and locations are at the edge; above them are
the part of a PE and that of the coordinator. `runtime/job/checkpoints.py` and `recovery.py` use it for a running job.
"""
