"""Saves a job at one moment of its streams: once, when it is stopped, or periodically while it runs."""
