"""Ray: actors that host the runtime's plain objects, calls to them, placement. The only importer of `ray`.

Ray carries control, never tuples. Importing this package imports no Ray; its functions do.
"""
