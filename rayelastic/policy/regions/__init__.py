"""Organic adaptation of regions over processing elements and nodes (Joker). Knows no threads and no queues."""
