"""Arrow tables and DataFrames."""
