"""The input tuple and the output tuples: types, fields, the loop over a run."""
