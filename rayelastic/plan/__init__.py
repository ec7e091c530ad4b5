"""Pure planning: a graph becomes regions, pipelines and processing elements. No clocks, metrics, Ray or native code."""
