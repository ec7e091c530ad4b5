"""Sources whose rows somebody outside pushes, as a job answers for them."""
