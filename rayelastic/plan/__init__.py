"""Pure planning: a graph becomes regions, pipelines and PEs. No clocks, metrics, Ray or native code."""
