"""The papers' figures, one file each: `python -m bench.figures --all`, or by name. See `bench/figures/__main__.py`."""
