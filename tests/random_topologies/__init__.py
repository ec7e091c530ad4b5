"""Random topologies over random rows, run by the engine and by a naive interpreter that shares no code with it."""
