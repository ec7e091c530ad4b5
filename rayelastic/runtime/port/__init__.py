"""Connections between processes: listening, dialling, and the proof of the job's secret. Knows no tuples."""
