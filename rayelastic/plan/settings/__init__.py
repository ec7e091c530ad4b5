"""Objects of a JobConfig, each checked when it is made: threads, elasticity, network, checkpoint, bounds, goal."""
