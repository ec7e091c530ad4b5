"""A change of plan, carried out on a running job step by step, and remembered."""
