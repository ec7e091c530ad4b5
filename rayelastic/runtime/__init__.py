"""The hosts of the native scheduler: PEs and the coordinator, as plain objects.

Knows neither Ray nor Spark; `rayelastic.on_ray` puts these objects into actors.
"""
