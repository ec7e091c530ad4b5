"""Connections between PEs: the data port, dialling, and the links that stay for the job's life."""
