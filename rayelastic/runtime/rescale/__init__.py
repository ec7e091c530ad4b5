"""A change of plan, executed on a running job step by step, with a journal."""
