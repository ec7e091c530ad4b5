"""One file for each operator: a function from an Upstream to an OperatorSpec. Know no streams as users hold them."""
