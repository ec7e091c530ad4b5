"""Sources and sinks: a folder for each, with its declaration, its reader and its writer.

Knows neither PEs nor the coordinator: the runtime drives what `source.py` and `sink.py` describe. A `declaration`
knows neither readers nor native code, so that a topology can be declared anywhere.
"""
