"""Organic adaptation of regions over PEs and nodes (Joker). Knows no threads and no queues."""
