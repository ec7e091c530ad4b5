"""Observation of a running job: metrics, log, bottleneck. Changes nothing."""
