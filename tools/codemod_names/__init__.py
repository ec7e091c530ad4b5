"""Moves names of operators from the first place to `name=`; see `__main__`."""
