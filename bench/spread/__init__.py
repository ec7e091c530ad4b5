"""What a job makes of several nodes by itself, against the best plan that was found by hand."""
