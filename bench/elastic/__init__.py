"""Elasticity of the real engine on random graphs, against the best static setting of a search in the same run."""
