"""Our controller: guided by what the profiler knows of costs. Knows nothing of the paper's."""
