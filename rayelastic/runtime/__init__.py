"""The loops that host the native scheduler: processing elements and the coordinator, as plain objects.

Nothing in here knows Ray or Spark; `rayelastic.on_ray` puts these objects into actors.
"""
