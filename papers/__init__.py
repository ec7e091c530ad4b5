"""The papers' elastic algorithms as published: what `elasticity="paper"` and `regions="paper"` run, and benchmarks.

They lie beside the product, which has one controller for each level and loads these by name (`policy/published.py`).
They know policies and plans, as the controllers of `policy` do.
"""
