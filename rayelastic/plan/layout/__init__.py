"""A layered layout of graphs, the same for page, notebooks and files: places of boxes, ways of edges. Pure values."""
